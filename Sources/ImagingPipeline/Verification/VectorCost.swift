// VectorCost: estimates the cost of an SVG's filters at the drawn size.

import Model

/// An estimate of an SVG's filter effects (W3C Filter Effects Module Level 1), which can keep
/// librsvg busy for minutes.
///
/// The estimate is rough: a filter in a style counts for every element, content repeated by `use`
/// counts once, and each filter counts at least once, because a reference can be written in many
/// ways (quotes, character references, escapes). The limit on processor time covers the rest.
struct VectorCost {
  /// The cost of one filter primitive: nanoseconds per pixel, and per cell of its kernel.
  private struct Primitive {
    var perPixel = 65.0
    var cells = 0.0
    var perCell = 0.0
    /// Whether the kernel grows with the drawn size.
    var isScaled = false
  }

  private var filters: [String: [Primitive]] = [:]
  /// The number of references to each filter, in attributes and in styles.
  private var uses: [String: Int] = [:]
  private var styleUses: [String: Int] = [:]
  private var elements = 0

  /// The maximum estimated processor time, in seconds.
  private static let maximumSeconds = 4.0
  /// The side of libvips's tiles, in pixels. librsvg computes a filter again for each tile.
  private static let tile = 2_000

  /// Checks the cost of a vector.
  ///
  /// - Parameters:
  ///   - size: The drawn size.
  ///   - nominal: The size in its header.
  /// - Throws: `ImageError.ofVariant` with `.tooCostly`, because a smaller drawing may be cheap
  ///   enough.
  static func check(
    _ source: UnsafeRawBufferPointer, drawn size: PixelSize, nominal: PixelSize
  ) throws(ImageError) {
    let scale = Double(max(size.width, 1)) / Double(max(nominal.width, 1))
    let seconds = VectorCost(source).seconds(drawn: size, scale: scale)
    guard seconds <= maximumSeconds else {
      throw .ofVariant(
        .tooCostly(
          reason: "its filters would take about \(Int(min(seconds, 1e9))) s of processor time at "
            + "\(size); at most \(Int(maximumSeconds)) are allowed"))
    }
  }

  /// Reads the document's tags, ignoring their nesting.
  init(_ source: UnsafeRawBufferPointer) {
    var filter: String?
    var isInStyle = false
    var rest = source[...]
    while let open = rest.firstIndex(of: UInt8(ascii: "<")) {
      if isInStyle { Self.count(rest[..<open], in: &styleUses) }
      let close = rest[open...].firstIndex(of: UInt8(ascii: ">")) ?? rest.endIndex
      let tag = rest[rest.index(after: open)..<close]
      rest = rest[close...].dropFirst()
      let name = Self.localName(of: tag)
      if name == "style" { isInStyle = true }
      if name == "/style" { isInStyle = false }
      guard !tag.starts(with: "/".utf8) else { continue }
      elements += 1
      Self.count(tag, in: &uses)
      if name == "filter" {
        filter = Self.attribute("id", of: tag)
        if let filter, filters[filter] == nil { filters[filter] = [] }
      } else if name.hasPrefix("fe"), let filter {
        filters[filter, default: []].append(Self.primitive(name, tag: tag))
      }
    }
  }

  /// Returns the estimated processor time of all filters, in seconds.
  func seconds(drawn size: PixelSize, scale: Double) -> Double {
    let tiles = [size.width, size.height].map { Double(($0 + Self.tile - 1) / Self.tile) }
    let pixels = size.area * tiles[0] * tiles[1]
    return filters.reduce(0) { sum, filter in
      let (id, primitives) = filter
      let references = Double(uses[id] ?? 0) + Double(styleUses[id] ?? 0) * Double(elements)
      let each = primitives.reduce(0.0) { sum, primitive in
        let growth = primitive.isScaled ? max(scale * scale, 1e-9) : 1
        return sum + primitive.perPixel + primitive.cells * growth * primitive.perCell
      }
      return sum + max(references, 1) * each * pixels / 1e9
    }
  }

  /// Returns the cost of a primitive. The coefficients are the measured processor time of librsvg
  /// 2.54.
  private static func primitive(
    _ name: String, tag: Slice<UnsafeRawBufferPointer>
  ) -> Primitive {
    func number(_ attribute: String) -> Double? {
      self.attribute(attribute, of: tag)?.split { " ,\t\n".contains($0) }.compactMap { Double($0) }
        .filter(\.isFinite).max()
    }
    var primitive = Primitive()
    switch name {
    case "feTurbulence":
      primitive.cells = max(number("numOctaves") ?? 1, 1)
      primitive.perCell = 50
    case "feMorphology":
      let side = 2 * max(number("radius") ?? 0, 0)
      primitive.cells = side * side
      primitive.perCell = 1.4
      primitive.isScaled = true
    case "feConvolveMatrix":
      let side = max(number("order") ?? 3, 1)
      primitive.cells = side * side
      primitive.perCell = 3.8
    default: break
    }
    return primitive
  }

  /// Returns a tag's name without its namespace prefix; an end tag keeps its slash.
  private static func localName(of tag: Slice<UnsafeRawBufferPointer>) -> String {
    let name = tag.prefix(64).prefix { !" \t\r\n>".utf8.contains($0) }
    let isEnd = name.first == UInt8(ascii: "/")
    let local =
      name.lastIndex(of: UInt8(ascii: ":")).map { name[$0...].dropFirst() }
      ?? (isEnd ? name.dropFirst() : name)
    var text = String(decoding: local, as: UTF8.self)
    if text.hasSuffix("/") { text.removeLast() }
    return isEnd ? "/" + text : text
  }

  /// Returns the value of an attribute.
  private static func attribute(
    _ name: String, of tag: Slice<UnsafeRawBufferPointer>
  ) -> String? {
    let text = String(decoding: tag.prefix(65_536), as: UTF8.self)
    var rest = text[...]
    while let equals = rest.firstIndex(of: "=") {
      let key = rest[..<equals].split(whereSeparator: \.isWhitespace).last
      let behind = rest[equals...].dropFirst().drop(while: \.isWhitespace)
      guard let quote = behind.first, quote == "\"" || quote == "'" else { return nil }
      let value = behind.dropFirst().prefix { $0 != quote }
      if key.map({ $0 == name }) ?? false { return String(value) }
      rest = behind.dropFirst().drop { $0 != quote }.dropFirst()
    }
    return nil
  }

  /// Counts the references of the form `url(#…)`.
  private static func count(
    _ bytes: Slice<UnsafeRawBufferPointer>, in uses: inout [String: Int]
  ) {
    var rest = bytes
    while let hash = rest.firstIndex(of: UInt8(ascii: "#")) {
      let before = rest[..<hash].suffix(5)
      rest = rest[hash...].dropFirst()
      guard String(decoding: before, as: UTF8.self).contains("url(") else { continue }
      let id = rest.prefix { !")\"' \t\r\n".utf8.contains($0) }
      uses[String(decoding: id, as: UTF8.self), default: 0] += 1
    }
  }
}
