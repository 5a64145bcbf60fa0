// SecretMask+Prefilter: tells at little cost that a text contains no secret, as nearly all do.

extension SecretMask {
  /// Whether a text may contain a secret. `false` is certain: in any encoding, the text has no `@`
  /// and, if parameters count, no `=` behind two characters that can end a secret's name.
  static func mayHoldSecret(
    _ text: UnsafeBufferPointer<UInt8>, withParameters: Bool
  ) -> Bool {
    for (index, byte) in text.enumerated() {
      switch byte {
      case at: return true
      case equals where withParameters:
        if mayBeSecret(nameEndingAt: index, in: text) { return true }
      case percent where index + 2 < text.count:
        switch (text[index + 1], text[index + 2]) {
        case (UInt8(ascii: "2"), UInt8(ascii: "5")), (UInt8(ascii: "4"), UInt8(ascii: "0")):
          // An encoded percent sign may begin anything.
          return true
        case (UInt8(ascii: "3"), UInt8(ascii: "D")), (UInt8(ascii: "3"), UInt8(ascii: "d")):
          if withParameters, mayBeSecret(nameEndingAt: index, in: text) { return true }
        default: break
        }
      default: break
      }
    }
    return false
  }

  /// Judges the name in front of a sign by its last two characters.
  private static func mayBeSecret(
    nameEndingAt end: Int, in text: UnsafeBufferPointer<UInt8>
  ) -> Bool {
    for byte in text[max(end - 2, 0)..<end] where isIgnored(byte) { return true }
    // An encoded character is three long.
    if end >= 3, text[end - 3] == percent { return true }
    if end >= 4, text[end - 4] == percent {
      return !isBoundary(high: text[end - 3], low: text[end - 2])
    }
    guard end >= 2 else { return false }
    return endings.contains(ending(text[end - 2], text[end - 1]))
  }

  private static func isIgnored(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_") || byte == UInt8(ascii: ".")
  }

  /// Whether two hexadecimal digits stand for `?` or `&`, in front of a name of one character.
  private static func isBoundary(high: UInt8, low: UInt8) -> Bool {
    high == UInt8(ascii: "3") && (low | 0x20) == UInt8(ascii: "f")
      || high == UInt8(ascii: "2") && low == UInt8(ascii: "6")
  }

  /// The last two characters of a name, in lower case if they are letters.
  private static func ending(_ first: UInt8, _ second: UInt8) -> UInt16 {
    UInt16(first | 0x20) << 8 | UInt16(second | 0x20)
  }

  private static let endings: [UInt16] = Set(
    (names + nameEnds).map { name in
      let last = Array(name.utf8.suffix(2))
      return ending(last[0], last[1])
    }
  ).sorted()
}
