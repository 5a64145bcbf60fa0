// VectorCost: estimates the cost of drawing an SVG at a size.

import Model

/// An estimate of the processor time that librsvg takes to draw an SVG. A few kilobytes can keep it busy for minutes:
/// filters (W3C Filter Effects Module Level 1), masks and layers cost time for each pixel of the drawing, and `use`
/// repeats what it refers to, also other `use`s.
///
/// The estimate is rough: pixels are those of the whole drawing, what a `use` passes on to its content does not count, and
/// what cannot be followed (entities, escapes, content that contains itself) counts as above every limit. The pool stops
/// what takes longer all the same.
struct VectorCost {
  /// The cost of one element with all that it draws.
  private struct Edge {
    let target: Int
    let times: Double
  }

  private let document: VectorDocument
  /// The edges of each element: those of element `n` are `edges[starts[n]..<starts[n + 1]]`.
  private var starts: [Int] = []
  private var edges: [Edge] = []
  /// Whether a reference cannot be followed.
  private var isOpaque: Bool
  private let extraOfMasks: [Double]
  private let extraOfSheets: [Double]

  /// The maximum estimated processor time beyond that of plain shapes drawn once, in seconds.
  private static let maximumSeconds = 4.0
  /// The side of libvips's tiles, in pixels. librsvg computes a filter again for each tile.
  private static let tile = 2_000
  /// Nanoseconds of a mask for each pixel.
  private static let mask = 9.0

  /// Checks the cost of a vector.
  ///
  /// - Parameters:
  ///   - size: The drawn size.
  ///   - nominal: The size in its header.
  /// - Returns: The estimated processor time in seconds.
  /// - Throws: `ImageError.ofVariant` with `.tooCostly`, because a smaller drawing may be cheap
  ///   enough.
  @discardableResult
  static func check(
    _ source: UnsafeRawBufferPointer, drawn size: PixelSize, nominal: PixelSize
  ) throws(ImageError) -> Double {
    let scale = Double(max(size.width, 1)) / Double(max(nominal.width, 1))
    let cost = VectorCost(source)
    let seconds = cost.seconds(drawn: size, scale: scale)
    guard seconds - cost.plainSeconds <= maximumSeconds else {
      let reason =
        seconds < .infinity
        ? "drawing it would take about \(Int(min(seconds, 1e9))) s of processor time at \(size)"
        : "it contains itself, or refers to content in a way that cannot be followed"
      throw .ofVariant(
        .tooCostly(reason: reason + "; at most \(Int(maximumSeconds)) s are allowed"))
    }
    return seconds
  }

  /// Reads a document.
  init(_ source: UnsafeRawBufferPointer) {
    document = VectorDocument(source)
    isOpaque = document.isOpaque
    let elements = document.elements
    var ids: [String: Int] = [:]
    for (index, element) in elements.enumerated() {
      // The first one with an id counts, as in librsvg.
      if let id = element.id, ids[id] == nil { ids[id] = index }
    }
    var found: [(from: Int, edge: Edge)] = []
    var isReferenced = [Bool](repeating: false, count: elements.count)
    var masks = [Double](repeating: 0, count: elements.count)
    var layers = [Double](repeating: 0, count: elements.count)
    for (index, element) in elements.enumerated() {
      var references = element.declarations.references
      if !document.sheet.isEmpty {
        let matched = document.sheet.declarations(
          name: element.name, id: element.id, classes: element.classes)
        references += matched.references
        if matched.hasLayer, !element.declarations.hasLayer { layers[index] = 0.4 }
      }
      for reference in references + (element.link.map { [$0] } ?? []) {
        guard let id = reference.id, let target = ids[id] else {
          if reference.id == nil || document.hasEntities { isOpaque = true }
          continue
        }
        if reference.isMask { masks[index] += Self.mask }
        let isMarker = elements[target].name == "marker"
        isReferenced[target] = true
        found.append((index, Edge(target: target, times: isMarker ? Double(element.vertices) : 1)))
      }
    }
    for (index, element) in elements.enumerated() where element.parent >= 0 {
      // Each counts at least once, because a reference may be overlooked.
      guard !isReferenced[index] || !document.isNeverDrawn(index) else { continue }
      found.append((element.parent, Edge(target: index, times: 1)))
    }
    extraOfMasks = masks
    extraOfSheets = layers
    starts = [Int](repeating: 0, count: elements.count + 1)
    for (from, _) in found { starts[from + 1] += 1 }
    for index in elements.indices { starts[index + 1] += starts[index] }
    var places = starts
    edges = [Edge](repeating: Edge(target: 0, times: 0), count: found.count)
    for (from, edge) in found {
      edges[places[from]] = edge
      places[from] += 1
    }
  }

  /// The estimated time of drawing each element once, without filters, masks, layers, dashes and text, in seconds.
  var plainSeconds: Double { document.elements.reduce(0) { $0 + $1.plain } / 1e9 }

  /// Returns the estimated processor time in seconds; `.infinity` if it has no bound.
  func seconds(drawn size: PixelSize, scale: Double) -> Double {
    guard !isOpaque else { return .infinity }
    let tiles = [size.width, size.height].map { Double(($0 + Self.tile - 1) / Self.tile) }
    let pixels = size.area * tiles[0] * tiles[1]
    let growth = max(scale * scale, 1e-9)
    let elements = document.elements
    var costs = [Double](repeating: 0, count: elements.count)
    /// 0: not visited, 1: being visited, 2: known.
    var states = [UInt8](repeating: 0, count: elements.count)
    var next = starts
    var total = 0.0
    // Without recursion, because a document may be nested at will.
    for root in elements.indices where states[root] == 0 && elements[root].parent < 0 {
      var stack = [root]
      while let index = stack.last {
        states[index] = 1
        if next[index] < starts[index + 1] {
          let target = edges[next[index]].target
          if states[target] == 1 { return .infinity }
          if states[target] == 0 {
            stack.append(target)
          } else {
            next[index] += 1
          }
          continue
        }
        let element = elements[index]
        let perPixel =
          element.perPixel + element.perScaledPixel * growth + extraOfMasks[index]
          + extraOfSheets[index]
        costs[index] = element.plain + element.extra + perPixel * pixels
        for edge in edges[starts[index]..<starts[index + 1]] {
          costs[index] += edge.times * costs[edge.target]
        }
        states[index] = 2
        stack.removeLast()
      }
      total += costs[root]
    }
    return total / 1e9
  }
}
