// VectorLimits: limits what an SVG holds before librsvg draws it: elements, references, entities and images.

import ImagingWire
import Model

/// What an SVG holds, as far as it tells how long drawing takes.
///
/// A few kilobytes can keep librsvg busy for minutes. These limits find what grows without bound. What else takes long,
/// such as filters on a large drawing, meets the time limit for vectors, which is half of other sources'.
struct VectorLimits {
  /// The pixels of all images in the drawing.
  private(set) var embeddedPixels = 0
  /// The elements that are drawn, those of `use` included.
  private(set) var drawnElements = 0.0
  /// The bytes of all paths.
  private var pathBytes = 0
  /// The filters, masks and filter steps. librsvg computes each for the whole drawing.
  private var passes = 0

  /// The maximum number of elements, and of elements that are drawn. librsvg's own limit is as high.
  private static let maximumElements = 500_000
  /// The maximum depth of elements in elements: libxml2's.
  private static let maximumDepth = 256
  /// How deep a `use` may refer to content with other `use`s.
  private static let maximumUses = 16

  /// Reads a document.
  ///
  /// - Throws: `ImageError.tooCostly` for too much of something, for an SVG that contains itself, and for entities that
  ///   hide elements, references or images; `.tooManyPixels` if its images together exceed the limit of a source.
  init(checking source: UnsafeRawBufferPointer, limits: ImagingLimits) throws(ImageError) {
    var elements = VectorElements()
    var scanner = VectorScanner(source)
    while let part = scanner.next() {
      switch part {
      case .open(let tag):
        try elements.open(tag)
        guard elements.count <= Self.maximumElements, elements.depth <= Self.maximumDepth else {
          throw .tooCostly(
            reason: "the SVG has more than \(Self.maximumElements) elements, or more than "
              + "\(Self.maximumDepth) in each other")
        }
        count(tag)
        if tag.name == "image" || tag.name == "feImage" {
          embeddedPixels += try VectorImages.pixels(of: tag, limits: limits)
          guard embeddedPixels <= limits.maximumPixels else {
            throw .tooManyPixels(pixels: embeddedPixels, limit: limits.maximumPixels)
          }
        }
      case .close: elements.close()
      case .declaration(_, isComplete: false):
        throw .tooCostly(reason: "the SVG's document type declaration has no end")
      case .declaration(let text, isComplete: true):
        guard !Self.hidesElements(String(decoding: text, as: UTF8.self)) else {
          throw .tooCostly(reason: "the SVG has entities that contain others, or elements")
        }
      }
    }
    drawnElements = try elements.drawn(
      atMost: Double(Self.maximumElements), usesWithin: Self.maximumUses)
  }

  /// Returns roughly the processor time of drawing, in seconds.
  func seconds(drawing pixels: Double) -> Double {
    let shapes = drawnElements * 5_000 + Double(pathBytes) * 100
    return (shapes + pixels * (2 + 65 * Double(passes))) / 1e9
  }

  /// Counts what takes time in an element.
  private mutating func count(_ tag: VectorTag) {
    if tag.name.hasPrefix("fe") { passes += 1 }
    tag.forEachAttribute { name, isPrefixed, value in
      switch name {
      case _ where isPrefixed: break
      case "d", "points": pathBytes += value.count
      case "filter", "mask": passes += 1
      default: break
      }
    }
  }

  /// Whether a document type declares entities that hold more than plain text, such as the names of namespaces (XML 1.0,
  /// 4.2). What they stand for is in none of the tags that are read here.
  private static func hidesElements(_ declaration: String) -> Bool {
    var isEntity = false
    for part in declaration.split(separator: "<").dropFirst() {
      if part.hasPrefix("!ENTITY") {
        isEntity = true
        let name = part.dropFirst(7).drop(while: \.isWhitespace)
        if name.first == "%" || part.contains("&") { return true }
      } else if isEntity, part.first != "!", part.first != "?" {
        // Any other `<` is within the value of an entity.
        return true
      }
    }
    return false
  }
}

/// The tree of a document's elements, and which of them each `use` draws again.
private struct VectorElements {
  /// The parent of each element, in document order; -1 for none.
  private var parents: [Int32] = []
  private var open: [Int32] = []
  private var ids: [String: Int] = [:]
  private var uses: [(element: Int, id: String)] = []

  var count: Int { parents.count }
  var depth: Int { open.count }

  /// Adds an element.
  ///
  /// - Throws: `ImageError.tooCostly` for an id or a reference that an entity stands for.
  mutating func open(_ tag: VectorTag) throws(ImageError) {
    let index = parents.count
    parents.append(open.last ?? -1)
    if !tag.isEmpty { open.append(Int32(index)) }
    let isUse = ["use", "pattern", "feImage"].contains(tag.name)
    var isHidden = false
    tag.forEachAttribute { name, isPrefixed, value in
      let isID = name == "id" && !isPrefixed
      guard isID || name == "href" && isUse else { return }
      guard let text = VectorTag.decoded(value)?.drop(while: \.isWhitespace) else {
        isHidden = true
        return
      }
      if isID {
        // The first one with an id counts, as in librsvg.
        if ids[String(text)] == nil { ids[String(text)] = index }
      } else if text.first == "#" {
        uses.append((index, String(text.dropFirst().prefix { !$0.isWhitespace })))
      }
    }
    if isHidden { throw .tooCostly(reason: "a reference in the SVG is given by entities") }
  }

  mutating func close() { _ = open.popLast() }

  /// Returns how many elements are drawn, each `use` with all that it refers to.
  ///
  /// - Throws: `ImageError.tooCostly` above `most`, and if references nest deeper than `levels`, or without end.
  func drawn(atMost most: Double, usesWithin levels: Int) throws(ImageError) -> Double {
    let references = uses.compactMap { use in ids[use.id].map { (use.element, $0) } }
    guard !references.isEmpty else { return Double(count) }
    /// For each element, those that it draws. Each pass follows references one level deeper.
    var counts = [Double](repeating: 1, count: count)
    for _ in 0..<levels + 2 {
      var deeper = [Double](repeating: 1, count: count)
      for (user, target) in references { deeper[user] += counts[target] }
      for index in parents.indices.reversed() where parents[index] >= 0 {
        deeper[Int(parents[index])] += deeper[index]
      }
      guard deeper[0] <= most else {
        throw .tooCostly(reason: "the SVG draws more than \(Int(most)) elements")
      }
      if deeper == counts { return counts[0] }
      counts = deeper
    }
    throw .tooCostly(reason: "references of the SVG nest deeper than \(levels) levels")
  }
}
