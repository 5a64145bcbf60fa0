// ProfileDescription: what an ICC profile calls itself.

/// Reads the `desc` tag of a profile (ICC.1:2022, 9.2.41, and ICC.1:2001-04, 6.4.32), which is a stranger's text.
enum ProfileDescription {
  /// So many code points are enough to tell profiles apart.
  private static let longest = 80

  /// The description, without control characters and cut where it is long; `nil` where there is none.
  static func read(_ profile: [UInt8]) -> String? {
    // The header's 128 bytes, then a table: a count, and signature, offset and size of each tag (7.3).
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
    // Version 2: a count of bytes, its NUL included, and ASCII.
    case signature("desc"):
      guard let count = number(tag, at: 8) else { return nil }
      return String(decoding: tag.dropFirst(12).prefix(count).prefix { $0 != 0 }, as: UTF8.self)
    // Version 4: a count of languages, the size of a record, and of each language its two codes, and length and offset of
    // UTF-16, most significant byte first. The first one is the default.
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

  /// 32 bits, most significant byte first; `nil` past the end.
  private static func number(_ bytes: [UInt8], at offset: Int) -> Int? {
    guard offset >= 0, bytes.count >= 4, offset <= bytes.count - 4 else { return nil }
    return bytes[offset..<offset + 4].reduce(0) { $0 << 8 | Int($1) }
  }

  private static func signature(_ name: String) -> Int { name.utf8.reduce(0) { $0 << 8 | Int($1) } }
}
