// JSON5Structure: what the JSON5 decoder does not tell: repeated keys, and the line of an error.

/// Scans objects, keys, strings and comments (https://spec.json5.org) for what a decoder hides.
struct JSON5Structure {
  /// The paths of keys that an object has more than once, such as `server.port`, in file order.
  private(set) var repeatedKeys: [String] = []

  /// An open object or list. A list has no keys.
  private struct Level {
    let path: String
    let isObject: Bool
    var keys: Set<String> = []
    var key: String?
  }

  private var levels: [Level] = []
  private var isInBlockComment = false
  /// The last character that is neither white space nor in a comment.
  private var last: UInt8?

  /// Scans a text. A text that is not valid has any result.
  init(of text: String = "") {
    scan(text[...])
  }

  /// Returns the first line (from 1) after which `decodes` can no longer accept the text. Closes
  /// the open brackets of each prefix of whole lines and decodes the result.
  static func errorLine(in text: String, decodes: (String) -> Bool) -> Int {
    var structure = JSON5Structure()
    var prefix = ""
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    for (index, line) in lines.enumerated() {
      prefix += line + "\n"
      structure.scan(line)
      // An unfinished block comment, or a key without its value, is not an error yet.
      guard !structure.isInBlockComment else { continue }
      if !decodes(prefix + structure.completion) { return index + 1 }
    }
    return lines.count
  }

  /// The text that completes what is scanned.
  private var completion: String {
    (last == nil || last == UInt8(ascii: ":") ? "null" : "")
      + levels.reversed().map { $0.isObject ? "}" : "]" }.joined()
  }

  private mutating func scan(_ text: Substring) {
    var rest = Array(text.utf8)[...]
    while let byte = rest.popFirst() {
      if isInBlockComment {
        guard byte == UInt8(ascii: "*"), rest.first == UInt8(ascii: "/") else { continue }
        rest.removeFirst()
        isInBlockComment = false
        continue
      }
      switch (byte, rest.first) {
      case (UInt8(ascii: "/"), UInt8(ascii: "/")):
        rest = rest.drop { $0 != UInt8(ascii: "\n") }
        continue
      case (UInt8(ascii: "/"), UInt8(ascii: "*")):
        rest.removeFirst()
        isInBlockComment = true
        continue
      case (UInt8(ascii: " "), _), (UInt8(ascii: "\t")...UInt8(ascii: "\r"), _): continue
      default: last = byte
      }
      read(byte, &rest)
    }
  }

  private mutating func read(_ byte: UInt8, _ rest: inout ArraySlice<UInt8>) {
    switch byte {
    case UInt8(ascii: "{"), UInt8(ascii: "["):
      let path = levels.last.map { [$0.path, $0.key ?? ""].filter { !$0.isEmpty } } ?? []
      levels.append(Level(path: path.joined(separator: "."), isObject: byte == UInt8(ascii: "{")))
    case UInt8(ascii: "}"), UInt8(ascii: "]"): _ = levels.popLast()
    case UInt8(ascii: ","):
      if !levels.isEmpty { levels[levels.count - 1].key = nil }
    case UInt8(ascii: ":"): break
    default:
      let word = Self.word(from: byte, &rest)
      guard let level = levels.last, level.isObject, level.key == nil else { return }
      levels[levels.count - 1].key = word
      guard !levels[levels.count - 1].keys.insert(word).inserted else { return }
      repeatedKeys.append(level.path.isEmpty ? word : level.path + "." + word)
    }
  }

  /// Returns the string or the bare word that begins with `first`.
  private static func word(from first: UInt8, _ rest: inout ArraySlice<UInt8>) -> String {
    guard first == UInt8(ascii: "\"") || first == UInt8(ascii: "'") else {
      let word = rest.prefix { !" \t\r\n,:{}[]/".utf8.contains($0) }
      rest = rest.dropFirst(word.count)
      return String(decoding: [first] + word, as: UTF8.self)
    }
    var word: [UInt8] = []
    while let byte = rest.popFirst(), byte != first {
      word.append(byte)
      if byte == UInt8(ascii: "\\"), let escaped = rest.popFirst() { word.append(escaped) }
    }
    return String(decoding: word, as: UTF8.self)
  }
}
