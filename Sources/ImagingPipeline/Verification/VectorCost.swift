// VectorCost: what the filters of an SVG take at the size it is drawn at.

import Model

/// Filter effects of an SVG (W3C Filter Effects Module Level 1): a few bytes that can keep librsvg busy for minutes.
///
/// It is an estimate: what styles apply to counts for each element, what `use` repeats counts once. What takes longer all
/// the same meets the limit of processor time.
struct VectorCost {
  /// A primitive's share: nanoseconds a pixel by themselves, and for each cell of its kernel.
  private struct Primitive {
    var perPixel = 65.0
    var cells = 0.0
    var perCell = 0.0
    /// Whether the kernel grows with the size.
    var isScaled = false
  }

  private var filters: [String: [Primitive]] = [:]
  /// How often each reference stands in the document, and in its styles.
  private var uses: [String: Int] = [:]
  private var styleUses: [String: Int] = [:]
  private var elements = 0

  /// Most seconds of processor that are begun with.
  private static let mostSeconds = 4.0
  /// libvips draws tiles of so many pixels a side, and librsvg computes a filter anew for each: measured, 9 megapixels in
  /// four tiles take 3.7 times as long a pixel as one does in one.
  private static let tile = 2_000

  /// Holds a vector to it.
  ///
  /// - Parameters:
  ///   - size: As drawn.
  ///   - nominal: What its header says.
  /// - Throws: `ImageError.ofVariant` with `.tooCostly`: drawn smaller, it may do.
  static func check(
    _ source: UnsafeRawBufferPointer, drawn size: PixelSize, nominal: PixelSize
  ) throws(ImageError) {
    let scale = Double(max(size.width, 1)) / Double(max(nominal.width, 1))
    let seconds = VectorCost(source).seconds(drawn: size, scale: scale)
    guard seconds <= mostSeconds else {
      throw .ofVariant(
        .tooCostly(
          reason: "its filters would take about \(Int(min(seconds, 1e9))) s of processor at "
            + "\(size); at most \(Int(mostSeconds)) are begun with"))
    }
  }

  /// Reads the document's tags, without looking at how they nest.
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
        filters[filter, default: []].append(Self.primitive(name, tag))
      }
    }
  }

  /// An estimate of what all filters take.
  func seconds(drawn size: PixelSize, scale: Double) -> Double {
    let tiles = [size.width, size.height].map { Double(($0 + Self.tile - 1) / Self.tile) }
    let pixels = size.area * tiles[0] * tiles[1]
    return filters.reduce(0) { sum, filter in
      let (id, primitives) = filter
      let count = Double(uses[id] ?? 0) + Double(styleUses[id] ?? 0) * Double(elements)
      let each = primitives.reduce(0.0) { sum, primitive in
        let growth = primitive.isScaled ? max(scale * scale, 1e-9) : 1
        return sum + primitive.perPixel + primitive.cells * growth * primitive.perCell
      }
      return sum + count * each * pixels / 1e9
    }
  }

  /// Measured with librsvg 2.54 at 1,000 by 1,000 pixels, processor time: a blur or a colour matrix 67 ns a pixel, lights 44,
  /// noise 50 an octave, 1.4 a cell where shapes are thinned or thickened (radius 20), 3.8 a cell of a convolution (15 by 15).
  private static func primitive(
    _ name: String, _ tag: Slice<UnsafeRawBufferPointer>
  ) -> Primitive {
    func number(_ attribute: String) -> Double? {
      self.attribute(attribute, of: tag)?.split { " ,\t\n".contains($0) }.compactMap { Double($0) }
        .filter(\.isFinite).max()
    }
    var primitive = Primitive()
    switch name {
    case "feTurbulence":
      (primitive.cells, primitive.perCell) = (max(number("numOctaves") ?? 1, 1), 50)
    case "feMorphology":
      let side = 2 * max(number("radius") ?? 0, 0)
      (primitive.cells, primitive.perCell, primitive.isScaled) = (side * side, 1.4, true)
    case "feConvolveMatrix":
      let side = max(number("order") ?? 3, 1)
      (primitive.cells, primitive.perCell) = (side * side, 3.8)
    default: break
    }
    return primitive
  }

  /// A tag's name without the prefix of its namespace.
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

  /// An attribute's value.
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

  /// Counts what `url(#…)` refers to.
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
