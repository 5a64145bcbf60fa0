// RepeatedKeys: finds keys that a configuration file has twice; JSON decoders accept them.

/// Reads the structure of valid JSON5 (https://spec.json5.org): objects, keys, strings, comments.
struct RepeatedKeys {
  /// The paths of keys that an object has more than once, such as `server.port`, in file order.
  private(set) var paths: [String] = []

  /// An open object or list. A list has no keys.
  private struct Level {
    let path: String
    let isObject: Bool
    var keys: Set<String> = []
    var key: String?
  }

  /// Scans a text. A text that is not valid has any result.
  init(in text: String) {
    var levels: [Level] = []
    var rest = Array(text.utf8)[...]
    while let byte = rest.popFirst() {
      switch byte {
      case UInt8(ascii: "/"):
        rest =
          rest.first == UInt8(ascii: "/")
          ? rest.drop { $0 != UInt8(ascii: "\n") } : Self.afterBlock(rest)
      case UInt8(ascii: "{"), UInt8(ascii: "["):
        let path = levels.last.map { [$0.path, $0.key ?? ""].filter { !$0.isEmpty } } ?? []
        levels.append(
          Level(path: path.joined(separator: "."), isObject: byte == UInt8(ascii: "{")))
      case UInt8(ascii: "}"), UInt8(ascii: "]"): _ = levels.popLast()
      case UInt8(ascii: ","):
        if !levels.isEmpty { levels[levels.count - 1].key = nil }
      case UInt8(ascii: ":"), UInt8(ascii: " "), UInt8(ascii: "\t")...UInt8(ascii: "\r"): continue
      default:
        let word = Self.word(from: byte, &rest)
        guard let level = levels.last, level.isObject, level.key == nil else { continue }
        levels[levels.count - 1].key = word
        guard !levels[levels.count - 1].keys.insert(word).inserted else { continue }
        paths.append(level.path.isEmpty ? word : level.path + "." + word)
      }
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

  /// Returns what follows the end of a block comment.
  private static func afterBlock(_ text: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    let end = text.indices.dropFirst().first { text[$0...].starts(with: "*/".utf8) }
    return end.map { text[$0...].dropFirst(2) } ?? []
  }
}
