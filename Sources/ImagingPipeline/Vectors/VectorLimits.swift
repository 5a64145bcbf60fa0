// VectorLimits: limits what an SVG holds before librsvg draws it: elements, references, entities
// and images.

import Core
import FoundationEssentials

/// What an SVG holds, as far as it tells how long drawing takes.
///
/// A few kilobytes can keep librsvg busy for minutes. These limits find what grows without bound.
/// What else takes long, such as filters on a large drawing, meets the time limit for vectors,
/// which is half of other sources'.
struct VectorLimits {
  /// The pixels of all images in the drawing.
  private(set) var embeddedPixels = 0
  /// The elements that are drawn, those of `use` included.
  private(set) var drawnElements = 0.0
  /// The bytes of all paths.
  private var pathBytes = 0
  /// The filters, masks and filter steps. librsvg computes each for the whole drawing.
  private var passes = 0

  /// The maximum number of elements, and of elements that are drawn. librsvg's own limit is as
  /// high.
  private static let maximumElements = 500_000
  /// The maximum depth of elements in elements: libxml2's.
  private static let maximumDepth = 256
  /// How deep a `use` may refer to content with other `use`s.
  private static let maximumUses = 16

  /// Reads a document.
  ///
  /// - Throws: `ImageError.tooCostly` for too much of something, for an SVG that contains itself,
  ///   and for entities that hide elements, references or images; `.tooManyPixels` if its images
  ///   together exceed the limit of a source.
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

  /// Whether a document type declares entities that hold more than plain text, such as the names of
  /// namespaces (XML 1.0, 4.2). What they stand for is in none of the tags that are read here.
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
  /// - Throws: `ImageError.tooCostly` above `most`, and if references nest deeper than `levels`, or
  ///   without end.
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

/// Checks the PNGs and JPEGs inside an SVG before librsvg decodes them, whole. It draws no other
/// images, and loads none from elsewhere. An image with a fault is not drawn, and the rest of the
/// SVG is.
enum VectorImages {
  /// Returns the pixels of the images that an element shows.
  ///
  /// - Throws: `ImageError.tooCostly` for a PNG whose texts inflate to too much, an image with too
  ///   many scans or parts, and an image within entities of the document.
  static func pixels(of tag: VectorTag, limits: ImagingLimits) throws(ImageError) -> Int {
    var links: [VectorBytes] = []
    tag.forEachAttribute { name, _, value in if name == "href" { links.append(value) } }
    var pixels = 0
    for link in links {
      for bytes in try contents(of: link) {
        let found = bytes.withUnsafeBytes { bytes in
          Result { () throws(ImageError) in try Self.pixels(of: bytes, limits: limits) }
        }
        pixels = min(pixels + (try found.get()), limits.maximumPixels + 1)
      }
    }
    return pixels
  }

  /// Returns the pixels of an image, at most one more than the limit; 0 for what is not drawn.
  private static func pixels(
    of image: UnsafeRawBufferPointer, limits: ImagingLimits
  ) throws(ImageError) -> Int {
    guard let format = FormatSigns.format(of: image), format == .png || format == .jpeg else {
      return 0
    }
    guard format == .jpeg || !PNGText.isExcessive(image) else {
      throw .tooCostly(
        reason: "a PNG in the SVG has text that inflates to more than \(PNGText.maximum) bytes")
    }
    do throws(ImageError) {
      try ContainerLengths.check(image, as: format, limits: limits)
    } catch {
      if case .tooCostly = error { throw error }
    }
    guard let header = try? SourceHeader(of: image, as: format, frame: nil, failOn: .none) else {
      return 0
    }
    _ = try SourceCost.check(image, header: header, limits: limits)
    return min(header.size.pixels, limits.maximumPixels + 1)
  }

  /// Returns the bytes of a `data:` URL (RFC 2397) in each way in which they may be read; none for
  /// any other link.
  private static func contents(of link: VectorBytes) throws(ImageError) -> [Data] {
    // White space in an attribute is read as spaces (XML 1.0, 3.3.3).
    let spaced =
      link.contains(where: VectorTag.isSpace) ? link.map { VectorTag.isSpace($0) ? 0x20 : $0 } : nil
    let decoded =
      if let spaced { spaced.withUnsafeBytes { VectorTag.decoded($0[...]) } } else {
        VectorTag.decoded(link)
      }
    guard let decoded else { throw .tooCostly(reason: "an image in the SVG is given by entities") }
    // A parser of URLs removes tabs and line breaks, here from character references.
    let url = decoded.utf8.filter { $0 == 0x20 || !VectorTag.isSpace($0) }.drop { $0 == 0x20 }
    guard String(decoding: url.prefix(5), as: UTF8.self).lowercased() == "data:",
      let comma = url.firstIndex(of: UInt8(ascii: ","))
    else { return [] }
    let content = Data(PercentEncoding.decodeLeniently(url[comma...].dropFirst()))
    // Only the last parameter says that the content is coded, and it may have spaces around it.
    let isCoded = String(decoding: url[..<comma], as: UTF8.self).lowercased().contains("base64")
    return isCoded ? [content, uncoded(content)] : [content]
  }

  /// Decodes Base64 without regard to other characters, and with or without padding.
  private static func uncoded(_ content: Data) -> Data {
    var digits = content.filter { $0.isLetter || $0.isDigit || "+/".utf8.contains($0) }
    if digits.count % 4 == 1 { digits.removeLast() }
    digits += Data(repeating: UInt8(ascii: "="), count: (4 - digits.count % 4) % 4)
    return Data(base64Encoded: digits) ?? Data()
  }
}
