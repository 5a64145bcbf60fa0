// VectorScanner: splits an SVG into tags and attributes, without building strings.

import Glibc

/// A range of bytes of an SVG.
typealias VectorBytes = Slice<UnsafeRawBufferPointer>

/// The tags and the document type of an SVG, one after another. It accepts more than XML does,
/// because librsvg reports malformed documents.
struct VectorScanner {
  /// A part of a document.
  enum Part {
    /// A start tag, or an empty-element tag.
    case open(VectorTag)
    case close
    /// A document type declaration, with its internal subset, and whether it ends.
    case declaration(VectorBytes, isComplete: Bool)
  }

  private let source: UnsafeRawBufferPointer
  private var place = 0
  /// The bytes of the last part.
  private(set) var range = 0..<0

  init(_ source: UnsafeRawBufferPointer) { self.source = source }

  /// Returns the next part; `nil` at the end. Skips texts, comments and processing instructions.
  mutating func next() -> Part? {
    while let start = position(of: "<", from: place) {
      if begins("<!--", at: start) {
        place = end(of: "-->", from: start + 4) ?? source.count
      } else if begins("<![CDATA[", at: start) {
        place = end(of: "]]>", from: start + 9) ?? source.count
      } else if begins("<?", at: start) {
        place = end(of: "?>", from: start + 2) ?? source.count
      } else if begins("<!", at: start) {
        let end = endOfDeclaration(from: start)
        place = end ?? source.count
        range = start..<place
        return .declaration(source[range], isComplete: end != nil)
      } else {
        place = endOfTag(from: start)
        range = start..<place
        let content = source[min(start + 1, place)..<place]
        return content.first == UInt8(ascii: "/") ? .close : .open(VectorTag(content))
      }
    }
    place = source.count
    return nil
  }

  private func begins(_ text: StaticString, at start: Int) -> Bool {
    guard let base = source.baseAddress, source.count - start >= text.utf8CodeUnitCount else {
      return false
    }
    return memcmp(base + start, text.utf8Start, text.utf8CodeUnitCount) == 0
  }

  private func position(of byte: Unicode.Scalar, from start: Int) -> Int? {
    guard start < source.count, let base = source.baseAddress,
      let found = memchr(base + start, CInt(byte.value), source.count - start)
    else { return nil }
    return UnsafeRawPointer(found) - base
  }

  /// Returns the position behind the next `end`; `nil` if there is none.
  private func end(of end: StaticString, from start: Int) -> Int? {
    let first = Unicode.Scalar(end.utf8Start.pointee)
    var found = start
    while let next = position(of: first, from: found) {
      if begins(end, at: next) { return next + end.utf8CodeUnitCount }
      found = next + 1
    }
    return nil
  }

  /// Returns the position behind a tag. A `>` within quotes does not end it.
  private func endOfTag(from start: Int) -> Int {
    var quote: UInt8?
    for place in start..<source.count {
      let byte = source[place]
      if let open = quote {
        if byte == open { quote = nil }
      } else if byte == UInt8(ascii: ">") {
        return place + 1
      } else if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'") {
        quote = byte
      }
    }
    return source.count
  }

  /// Returns the position behind a declaration, whose internal subset may contain others, comments
  /// and processing instructions; `nil` if it has no end.
  private func endOfDeclaration(from start: Int) -> Int? {
    var quote: UInt8?
    var depth = 0
    var place = start
    while place < source.count {
      let byte = source[place]
      if let open = quote {
        if byte == open { quote = nil }
      } else if byte == UInt8(ascii: "<"), begins("<!--", at: place) || begins("<?", at: place) {
        let isComment = source[place + 1] == UInt8(ascii: "!")
        let end = isComment ? end(of: "-->", from: place + 4) : end(of: "?>", from: place + 2)
        guard let end else { return nil }
        place = end
        continue
      } else {
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "'"): quote = byte
        case UInt8(ascii: "<"): depth += 1
        case UInt8(ascii: ">"):
          depth -= 1
          if depth == 0 { return place + 1 }
        default: break
        }
      }
      place += 1
    }
    return nil
  }
}

/// A start tag.
struct VectorTag {
  /// The name without its namespace prefix.
  let name: String
  /// Whether the element has no content.
  let isEmpty: Bool
  private let attributes: VectorBytes

  /// Creates a tag from what is between its angle brackets, including the last one.
  init(_ content: VectorBytes) {
    var content = content
    if content.last == UInt8(ascii: ">") { content = content.dropLast() }
    isEmpty = content.last == UInt8(ascii: "/")
    if isEmpty { content = content.dropLast() }
    let name = content.prefix { !Self.isSpace($0) }
    self.name = Self.local(name)
    attributes = content[name.endIndex...]
  }

  /// Calls `body` with the local name of each attribute, whether it has a namespace prefix, and its
  /// value.
  func forEachAttribute(_ body: (String, Bool, VectorBytes) -> Void) {
    var rest = attributes
    while let equals = rest.firstIndex(of: UInt8(ascii: "=")) {
      let name = rest[..<equals].drop { Self.isSpace($0) }.prefix { !Self.isSpace($0) }
      let behind = rest[equals...].dropFirst().drop { Self.isSpace($0) }
      guard let quote = behind.first, quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'")
      else { return }
      let value = behind.dropFirst().prefix { $0 != quote }
      body(Self.local(name), name.contains(UInt8(ascii: ":")), value)
      rest = rest[min(value.endIndex + 1, rest.endIndex)...]
    }
  }

  /// Returns a name without its namespace prefix. No name of SVG is longer than 64 bytes.
  private static func local(_ name: VectorBytes) -> String {
    let name = name.suffix(64)
    let local = name.lastIndex(of: UInt8(ascii: ":")).map { name[$0...].dropFirst() } ?? name
    return String(decoding: local, as: UTF8.self)
  }

  static func isSpace(_ byte: UInt8) -> Bool {
    byte == 0x20 || byte == 0x09 || byte == 0x0a || byte == 0x0d
  }
}

extension VectorTag {
  /// Returns an attribute's value without character references; `nil` for one that contains
  /// entities of the document, which may stand for anything.
  static func decoded(_ value: VectorBytes) -> String? {
    let text = String(decoding: value, as: UTF8.self)
    guard value.contains(UInt8(ascii: "&")) else { return text }
    var result = ""
    var rest = text[...]
    while let ampersand = rest.firstIndex(of: "&") {
      result += rest[..<ampersand]
      let name = rest[ampersand...].dropFirst().prefix { $0 != ";" }
      guard let character = character(name) else { return nil }
      result.append(character)
      rest = rest[name.endIndex...].dropFirst()
    }
    return result + rest
  }

  /// Returns what a character reference, without `&` and `;`, stands for.
  private static func character(_ name: Substring) -> Character? {
    let known: [Substring: Character] = [
      "quot": "\"", "apos": "'", "amp": "&", "lt": "<", "gt": ">",
    ]
    if let character = known[name] { return character }
    guard name.first == "#" else { return nil }
    let digits = name.dropFirst()
    let code =
      digits.first == "x" ? UInt32(digits.dropFirst(), radix: 16) : UInt32(digits, radix: 10)
    return code.flatMap(Unicode.Scalar.init).map(Character.init)
  }
}
