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
  /// What cannot be followed, in words for a message.
  private(set) var opacity: String?
  /// The nodes: elements, then two for each key and each rule of the style sheets. The second of two is drawn at each
  /// vertex.
  private let count: Int
  /// Nanoseconds of masks, filter functions and layers of each node for each pixel of the drawing.
  private var perPixel: [Double]
  private var layers: [Double]

  /// The maximum estimated processor time beyond that of plain shapes drawn once, in seconds.
  private static let maximumSeconds = 4.0
  /// The side of libvips's tiles, in pixels. librsvg computes a filter again for each tile.
  private static let tile = 2_000
  /// Nanoseconds of a mask for each pixel.
  private static let mask = 9.0
  /// Elements that draw nothing by themselves. Their properties cost nothing.
  private static let unstyled: Set<String> = [
    "filter", "linearGradient", "radialGradient", "stop", "style", "metadata", "title", "desc",
  ]

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
        : cost.opacity.map { "it has \($0), which the estimate does not follow" }
          ?? "it contains itself"
      throw .ofVariant(
        .tooCostly(reason: reason + "; at most \(Int(maximumSeconds)) s are allowed"))
    }
    return seconds
  }

  /// Reads a document.
  init(_ source: UnsafeRawBufferPointer) {
    document = VectorDocument(source)
    opacity = document.opacity
    let elements = document.elements
    let sheet = document.sheet
    let firstRule = elements.count + 2 * sheet.rulesOfKeys.count
    let count = firstRule + 2 * sheet.rules.count
    self.count = count
    perPixel = [Double](repeating: 0, count: count)
    layers = perPixel
    var ids: [String: Int] = [:]
    for (index, element) in elements.enumerated() {
      // The first one with an id counts, as in librsvg.
      if let id = element.id, ids[id] == nil { ids[id] = index }
    }
    var found: [(from: Int, edge: Edge)] = []
    var isReferenced = [Bool](repeating: false, count: elements.count)
    /// Adds references; those at each vertex are drawn from `repeated`, or as often as `vertices`.
    func add(_ references: some Sequence<VectorReference>, from: Int, repeated: Int, vertices: Int)
    {
      for reference in references {
        guard let id = reference.id, let target = ids[id] else {
          if reference.id == nil {
            opacity = opacity ?? "an escape or an entity in a reference"
          } else if document.hasHiddenIDs {
            opacity = opacity ?? "an entity in an id"
          }
          continue
        }
        if reference.kind == .mask { perPixel[from] += Self.mask }
        isReferenced[target] = true
        let isRepeated = reference.kind == .vertices
        let edge = Edge(target: target, times: isRepeated ? Double(vertices) : 1)
        found.append((isRepeated ? repeated : from, edge))
      }
    }
    for (index, element) in elements.enumerated() {
      add(element.links, from: index, repeated: index, vertices: 1)
      guard !Self.unstyled.contains(element.name), !element.name.hasPrefix("fe") else { continue }
      add(element.declarations.references, from: index, repeated: index, vertices: element.vertices)
      guard !sheet.isEmpty else { continue }
      for key in sheet.matchingKeys(name: element.name, id: element.id, classes: element.classes) {
        let node = elements.count + 2 * key
        found.append((index, Edge(target: node, times: 1)))
        found.append((index, Edge(target: node + 1, times: Double(element.vertices))))
      }
    }
    for (key, rules) in sheet.rulesOfKeys.enumerated() {
      for rule in rules {
        for offset in 0...1 {
          let edge = Edge(target: firstRule + 2 * rule + offset, times: 1)
          found.append((elements.count + 2 * key + offset, edge))
        }
      }
    }
    for (index, rule) in sheet.rules.enumerated() {
      let node = firstRule + 2 * index
      add(rule.references, from: node, repeated: node + 1, vertices: 1)
      perPixel[node] += 65 * Double(rule.functions)
      if rule.hasLayer { layers[node] = 0.4 }
    }
    for (index, element) in elements.enumerated() {
      perPixel[index] += element.perPixel
      layers[index] += element.layers
      guard element.parent >= 0 else { continue }
      // Each counts at least once, because a reference may be overlooked.
      guard !isReferenced[index] || !document.isNeverDrawn(index) else { continue }
      found.append((element.parent, Edge(target: index, times: 1)))
    }
    starts = [Int](repeating: 0, count: count + 1)
    for (from, _) in found { starts[from + 1] += 1 }
    for index in 0..<count { starts[index + 1] += starts[index] }
    var places = starts
    edges = [Edge](repeating: Edge(target: 0, times: 0), count: found.count)
    for (from, edge) in found {
      edges[places[from]] = edge
      places[from] += 1
    }
  }

  /// The number of edges, which is in proportion to the source.
  var edgeCount: Int { edges.count }

  /// The estimated time of drawing each element once, without filters, masks, layers, dashes and text, in seconds.
  var plainSeconds: Double { document.elements.reduce(0) { $0 + $1.plain } / 1e9 }

  /// Returns the estimated processor time in seconds; `.infinity` if it has no bound.
  func seconds(drawn size: PixelSize, scale: Double) -> Double {
    guard opacity == nil else { return .infinity }
    let tiles = [size.width, size.height].map { Double(($0 + Self.tile - 1) / Self.tile) }
    let pixels = size.area * tiles[0] * tiles[1]
    let growth = max(scale * scale, 1e-9)
    let elements = document.elements
    var costs = [Double](repeating: 0, count: count)
    /// 0: not visited, 1: being visited, 2: known.
    var states = [UInt8](repeating: 0, count: count)
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
        costs[index] = perPixel[index] * pixels + layers[index] * size.area
        if index < elements.count {
          let element = elements[index]
          costs[index] += element.plain + element.extra + element.perScaledPixel * growth * pixels
        }
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
