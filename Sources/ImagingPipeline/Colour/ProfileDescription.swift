// ProfileDescription: reads the description of an ICC profile, and which tags it has.

/// Reads the tags of a profile (ICC.1:2022, 7.3), which is untrusted input: `desc` (9.2.41; ICC.1:2001-04, 6.4.32) for
/// people, others by name.
enum ProfileDescription {
  /// The maximum code points of a description, enough to tell profiles apart.
  private static let longest = 80

  /// Returns the description without control characters, shortened if necessary; `nil` if there is
  /// no description.
  static func read(_ profile: [UInt8]) -> String? {
    guard let tag = tags(of: profile).first(where: { $0.name == signature("desc") }),
      tag.offset <= profile.count, tag.size <= profile.count - tag.offset
    else { return nil }
    return text(Array(profile[tag.offset..<tag.offset + tag.size])).flatMap(cleaned)
  }

  /// Whether a profile has a tag of this name.
  static func has(_ name: String, in profile: [UInt8]) -> Bool {
    tags(of: profile).contains { $0.name == signature(name) }
  }

  /// Returns the tags. The 128-byte header is followed by a table: a count, then signature, offset and size of each tag
  /// (7.3).
  private static func tags(of profile: [UInt8]) -> [(name: Int, offset: Int, size: Int)] {
    (0..<min(number(profile, at: 128) ?? 0, 100)).compactMap { index in
      let entry = 132 + index * 12
      guard let name = number(profile, at: entry), let offset = number(profile, at: entry + 4),
        let size = number(profile, at: entry + 8)
      else { return nil }
      return (name, offset, size)
    }
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
