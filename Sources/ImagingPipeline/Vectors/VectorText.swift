// VectorText: an SVG as librsvg reads it: in UTF-8, not compressed, without `var()`, with both
// sides.

import Core

/// Rewrites SVGs that browsers draw and librsvg does not. What is judged and what is drawn is the
/// result.
enum VectorText {
  /// The most bytes that a compressed SVG inflates to.
  static let maximum = 16 << 20

  /// Returns the document to use in place of a source; `nil` if it stays as it is, or is no SVG.
  static func mended(_ source: UnsafeRawBufferPointer) -> [UInt8]? {
    guard let text = inflated(source) else { return inUTF8(source) }
    return text.withUnsafeBytes { bytes in
      inUTF8(bytes) ?? (FormatSigns.format(of: bytes) == .svg ? text : nil)
    }
  }

  /// Returns the content of a gzip file (RFC 1952); `nil` for other files and for too large ones.
  private static func inflated(_ file: UnsafeRawBufferPointer) -> [UInt8]? {
    guard file.starts(with: [0x1f, 0x8b, 8]), file.count >= 18 else { return nil }
    let count = file.suffix(4).reversed().reduce(0) { $0 << 8 | Int($1) }
    return count <= maximum
      ? Zlib.inflated(file.baseAddress, file.count, count: count, isGzip: true) : nil
  }

  private static func inUTF8(_ source: UnsafeRawBufferPointer) -> [UInt8]? {
    let isLittle = source.starts(with: [0xff, 0xfe])
    guard isLittle || source.starts(with: [0xfe, 0xff]) else { return rewritten(source) }
    let units = stride(from: 2, to: source.count - 1, by: 2).map { place in
      UInt16(source[place + (isLittle ? 1 : 0)]) << 8
        | UInt16(source[place + (isLittle ? 0 : 1)])
    }
    var text = Array(String(decoding: units, as: UTF16.self).utf8)
    // The declaration names the other encoding. Without it a document is in UTF-8.
    if text.starts(with: "<?xml".utf8), let end = text.firstIndex(of: UInt8(ascii: ">")) {
      text.removeFirst(end + 1)
    }
    return text.withUnsafeBytes { bytes in
      rewritten(bytes) ?? (FormatSigns.format(of: bytes) == .svg ? text : nil)
    }
  }

  private static func rewritten(_ source: UnsafeRawBufferPointer) -> [UInt8]? {
    guard FormatSigns.format(of: source) == .svg else { return nil }
    let sized = sized(source)
    let text = sized ?? Array(source)
    return VectorVariables.resolved(text) ?? sized
  }

  /// The size of a replaced element without one of its own (CSS Images 3, section 5.3).
  private static let usual = (width: "300", height: "150")

  /// Returns an SVG without a `viewBox` with both sides, as browsers complete it; `nil` unless
  /// exactly one is given, without a `viewBox`.
  private static func sized(_ source: UnsafeRawBufferPointer) -> [UInt8]? {
    var scanner = VectorScanner(source)
    while let part = scanner.next() {
      guard case .open(let tag) = part else { continue }
      var names: Set<String> = []
      tag.forEachAttribute { name, isPrefixed, _ in if !isPrefixed { names.insert(name) } }
      let given = names.intersection(["width", "height"])
      // A name with a prefix is left as it is.
      guard source[scanner.range].starts(with: "<svg".utf8), tag.name == "svg", given.count == 1,
        !names.contains("viewBox"), !names.contains("style")
      else { return nil }
      let start = scanner.range.lowerBound + "<svg".utf8.count
      let added =
        given.contains("width") ? " height=\"\(usual.height)\"" : " width=\"\(usual.width)\""
      return Array(source[..<start]) + added.utf8 + source[start...]
    }
    return nil
  }
}

/// Replaces `var(--name, fallback)` in attributes and style sheets (CSS Custom Properties 1).
///
/// A property has a value if the document states one, for the root. Others have their fallback.
struct VectorVariables {
  /// How deep values may contain `var()`.
  private static let maximumDepth = 8

  private let text: [UInt8]
  private var values: [String: ArraySlice<UInt8>] = [:]
  private var result: [UInt8] = []
  /// The bytes that values may still add.
  private var left: Int

  /// Returns a document without `var()`; `nil` if it has none, or its values would grow too much.
  static func resolved(_ text: [UInt8]) -> [UInt8]? {
    guard text.indices.contains(where: { isCall(text[$0...]) }) else { return nil }
    var variables = VectorVariables(text)
    return variables.run() ? variables.result : nil
  }

  private init(_ text: [UInt8]) {
    self.text = text
    left = text.count + 65_536
    result.reserveCapacity(text.count)
  }

  private static func isCall(_ text: ArraySlice<UInt8>) -> Bool {
    text.first == UInt8(ascii: "v") && text.starts(with: "var(".utf8)
  }

  private mutating func run() -> Bool {
    let areas = styledAreas()
    for area in areas { readDefinitions(in: text[area.range], isRoot: area.isRoot) }
    var done = 0
    for area in areas {
      result += text[done..<area.range.lowerBound]
      guard add(text[area.range], depth: 0) else { return false }
      done = area.range.upperBound
    }
    result += text[done...]
    return true
  }

  /// Returns the tags, and the content of `style` elements. Text between others is shown, so it
  /// stays.
  private func styledAreas() -> [(range: Range<Int>, isRoot: Bool)] {
    var areas: [(range: Range<Int>, isRoot: Bool)] = []
    text.withUnsafeBytes { text in
      var scanner = VectorScanner(text)
      var hasRoot = false
      while let part = scanner.next() {
        guard case .open(let tag) = part else { continue }
        areas.append((scanner.range, !hasRoot && tag.name == "svg"))
        hasRoot = hasRoot || tag.name == "svg"
        guard tag.name == "style", !tag.isEmpty else { continue }
        let start = scanner.range.upperBound
        // Up to its end tag, or to that of the document.
        let end = scanner.next() == nil ? text.count : scanner.range.lowerBound
        areas.append((start..<end, false))
      }
    }
    return areas
  }

  /// Reads `--name: value` in rules for the root, and in the root's own tag.
  private mutating func readDefinitions(in area: ArraySlice<UInt8>, isRoot: Bool) {
    var isOfRoot = isRoot
    var selector = area.startIndex
    var place = area.startIndex
    while place < area.endIndex {
      switch area[place] {
      case UInt8(ascii: "{"):
        let words = String(decoding: area[selector..<place], as: UTF8.self)
          .split { " ,\t\r\n>[".contains($0) }
        isOfRoot = words.contains { [":root", "svg", "*", "svg:root"].contains($0) }
      case UInt8(ascii: "}"):
        isOfRoot = false
        selector = place + 1
      case UInt8(ascii: "-") where isOfRoot && area[place...].starts(with: "--".utf8):
        let before = place > area.startIndex ? area[place - 1] : 0x20
        let end = area[place...].firstIndex { !Self.isOfName($0) } ?? area.endIndex
        let colon = area[end...].firstIndex { !Self.isBlank($0) } ?? area.endIndex
        if !Self.isOfName(before), colon < area.endIndex, area[colon] == UInt8(ascii: ":") {
          let stop =
            area[colon...].firstIndex { byte in
              ";}\"'<".utf8.contains(byte)
            } ?? area.endIndex
          let name = String(decoding: area[place..<end], as: UTF8.self)
          values[name] = area[(colon + 1)..<stop].trimming(while: Self.isBlank)
          place = stop
          continue
        }
        place = max(end, place + 1)
        continue
      default: break
      }
      place += 1
    }
  }

  /// Adds a text with its calls replaced. Returns `false` if it would grow too much.
  private mutating func add(_ text: ArraySlice<UInt8>, depth: Int) -> Bool {
    if depth > 0 { left -= text.count }
    guard depth <= Self.maximumDepth, left >= 0 else { return false }
    var done = text.startIndex
    var place = text.startIndex
    while place < text.endIndex {
      let isCall =
        Self.isCall(text[place...])
        && (place == text.startIndex || !Self.isOfName(text[place - 1]))
      guard isCall, let call = Self.call(in: text, at: place) else {
        place += 1
        continue
      }
      result += text[done..<place]
      place = call.end
      done = place
      let value = values[String(decoding: call.name, as: UTF8.self)] ?? call.fallback
      guard let value else {
        result += text[call.start..<call.end]
        continue
      }
      guard add(value, depth: depth + 1) else { return false }
    }
    result += text[done...]
    return true
  }

  private typealias Call = (
    start: Int, end: Int, name: ArraySlice<UInt8>, fallback: ArraySlice<UInt8>?
  )

  /// Returns a call with its parts; `nil` if it does not end within the value.
  private static func call(in text: ArraySlice<UInt8>, at start: Int) -> Call? {
    var depth = 0
    var comma: Int?
    for place in (start + 3)..<text.endIndex {
      switch text[place] {
      case UInt8(ascii: "("): depth += 1
      case UInt8(ascii: ","): if depth == 1 { comma = comma ?? place }
      case UInt8(ascii: ")"):
        depth -= 1
        guard depth == 0 else { continue }
        let name = text[(start + 4)..<(comma ?? place)].trimming(while: isBlank)
        guard name.starts(with: "--".utf8) else { return nil }
        let fallback = comma.map { text[($0 + 1)..<place].trimming(while: isBlank) }
        return (start, place + 1, name, fallback)
      case UInt8(ascii: ";"), UInt8(ascii: "}"), UInt8(ascii: "<"): return nil
      default: break
      }
    }
    return nil
  }

  private static func isBlank(_ byte: UInt8) -> Bool {
    byte == 0x20 || (0x09...0x0d).contains(byte)
  }

  private static func isOfName(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_") || byte >= 0x80
      || (0x30...0x39).contains(byte) || (0x41...0x5a).contains(byte & 0xdf)
  }
}
