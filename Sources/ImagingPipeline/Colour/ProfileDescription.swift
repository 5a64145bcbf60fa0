// ProfileDescription: reads the description of an ICC profile.

/// Reads the `desc` tag of a profile (ICC.1:2022, 9.2.41, and ICC.1:2001-04, 6.4.32), which is
/// untrusted input.
enum ProfileDescription {
  /// The maximum code points of a description, enough to tell profiles apart.
  private static let longest = 80

  /// Returns the description without control characters, shortened if necessary; `nil` if there is
  /// no description.
  static func read(_ profile: [UInt8]) -> String? {
    // The 128-byte header is followed by a table: a count, then signature, offset and size of each
    // tag (7.3).
    guard let count = number(profile, at: 128) else { return nil }
    for index in 0..<min(count, 100) {
      let entry = 132 + index * 12
      guard number(profile, at: entry) == signature("desc") else { continue }
      guard let offset = number(profile, at: entry + 4), let size = number(profile, at: entry + 8),
        offset <= profile.count, size <= profile.count - offset
      else { return nil }
      return text(Array(profile[offset..<offset + size])).flatMap(cleaned)
    }
    return nil
  }

  private static func text(_ tag: [UInt8]) -> String? {
    switch number(tag, at: 0) {
    // Version 2: a byte count that includes the NUL, then ASCII.
    case signature("desc"):
      guard let count = number(tag, at: 8) else { return nil }
      return String(decoding: tag.dropFirst(12).prefix(count).prefix { $0 != 0 }, as: UTF8.self)
    // Version 4: the number of languages and the record size. Each record has two codes, and the
    // length and offset of big-endian UTF-16. The first record is the default.
    case signature("mluc"):
      guard let languages = number(tag, at: 8), languages > 0, let length = number(tag, at: 20),
        let offset = number(tag, at: 24), offset <= tag.count, length <= tag.count - offset
      else { return nil }
      let units = stride(from: offset, to: offset + length - length % 2, by: 2).map {
        UInt16(tag[$0]) << 8 | UInt16(tag[$0 + 1])
      }
      return String(decoding: units.prefix { $0 != 0 }, as: UTF16.self)
    default: return nil
    }
  }

  private static func cleaned(_ text: String) -> String? {
    let visible = text.unicodeScalars.filter {
      $0.value >= 0x20 && !(0x7f..<0xa0).contains($0.value)
    }
    let cut = String(String.UnicodeScalarView(visible.prefix(longest)))
    return cut.isEmpty ? nil : cut
  }

  /// Reads a big-endian 32-bit number; `nil` past the end.
  private static func number(_ bytes: [UInt8], at offset: Int) -> Int? {
    guard offset >= 0, bytes.count >= 4, offset <= bytes.count - 4 else { return nil }
    return bytes[offset..<offset + 4].reduce(0) { $0 << 8 | Int($1) }
  }

  private static func signature(_ name: String) -> Int { name.utf8.reduce(0) { $0 << 8 | Int($1) } }
}
