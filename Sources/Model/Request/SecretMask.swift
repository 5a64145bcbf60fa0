// SecretMask: masks user information and secret parameters of URLs in texts for logs, messages and
// lists.

/// Masks secrets of URLs, anywhere in a text.
///
/// - User information (RFC 3986, section 3.2.1), with and without a scheme in front, even if
///   characters of the password should have been encoded.
/// - Values of query parameters with names of secrets: `sig`, `token`, `X-Amz-Signature`,
///   `password`, …
///
/// Both are also found in text that is percent-encoded any number of times: a URL is a parameter of
/// `/image`, and may contain another URL as a parameter. In doubt the text is masked. Takes time in
/// proportion to the text's length.
public enum SecretMask {
  /// The replacement of a secret.
  public static let mark = "***"

  /// Returns the text with its secrets masked. Masking twice changes nothing.
  public static func masked(_ text: String) -> String { mask(text, withParameters: true) }

  /// Does the same for a text whose end is missing: a possible start of user information at its end
  /// counts as such.
  public static func maskedBeginning(_ text: String) -> String {
    // The highest encoding level, so that it ends only the innermost text.
    let sign = "%252540"
    let masked = mask(text + sign, withParameters: true)
    return masked.hasSuffix(sign) ? String(masked.dropLast(sign.count)) : masked
  }

  /// Returns the text with its user information masked and its parameters unchanged, for operators
  /// who need the full URL.
  public static func withoutUsers(_ text: String) -> String { mask(text, withParameters: false) }

  private static func mask(_ text: String, withParameters: Bool) -> String {
    var text = text
    guard text.withUTF8({ mayHoldSecret($0, withParameters: withParameters) }) else { return text }
    return maskAll(text, withParameters: withParameters)
  }

  /// Masks a text, by a scan of its characters. Slow, so `mayHoldSecret` decides first.
  static func maskAll(_ text: String, withParameters: Bool) -> String {
    let bytes = Array(text.utf8)
    let units = Unit.all(of: bytes)
    var result: [UInt8] = []
    var copied = 0
    for range in secrets(in: units, withParameters: withParameters)
      .sorted(by: { $0.lowerBound < $1.lowerBound })
    {
      let (start, end) = (units[range.lowerBound].start, units[range.upperBound - 1].end)
      guard end > copied else { continue }
      if start >= copied { result += bytes[copied..<start] + Array(mark.utf8) }
      copied = end
    }
    return String(decoding: result + bytes[copied...], as: UTF8.self)
  }

  /// Returns the secrets of a text; they may overlap.
  private static func secrets(in units: [Unit], withParameters: Bool) -> [Range<Int>] {
    var found: [Range<Int>] = []
    // Where `user:password` before a sign of each depth would begin: behind the last character that
    // cannot be in it.
    var starts = [Int](repeating: 0, count: Int(Unit.maximumDepth) + 1)
    var lastColon = -1
    var masked = 0
    let lastAt = units.lastIndex { $0.byte == at }
    for (index, unit) in units.enumerated() {
      let start = starts[Int(unit.depth)]
      switch unit.byte {
      case at where start < index && lastColon >= start: found.append(start..<index)
      case colon: lastColon = index
      case equals where withParameters && index >= masked && isSecret(units, nameEndingAt: index):
        masked = units[(index + 1)...].firstIndex { $0.endsValue(at: unit.depth) } ?? units.count
        if masked > index + 1 { found.append((index + 1)..<masked) }
      default: break
      }
      // An equals sign ends the name of a parameter, and may be in a password.
      if unit.endsAuthority(at: Unit.maximumDepth) || unit.isBlank || "&'".utf8.contains(unit.byte)
        || unit.byte == equals && lastColon < start
      {
        for depth in Int(unit.depth)..<starts.count { starts[depth] = index + 1 }
      }
      let isAfterSlash =
        unit.isSlash && index > 0 && units[index - 1].isSlash
        && (index == 1 || units[index - 2].isBlank
          || ":='\"(,".utf8.contains(units[index - 2].byte))
      if isAfterSlash,
        let user = authorityUser(in: units, from: index + 1, depth: unit.depth, lastOfAll: lastAt)
      {
        found.append(user)
      }
    }
    return found
  }

  /// Returns the user information of an authority that begins at `first`.
  private static func authorityUser(
    in units: [Unit], from first: Int, depth: UInt8, lastOfAll: Int?
  ) -> Range<Int>? {
    var lastAt: Int?
    var password: Int?
    var hasBlank = false
    var isBracketed = false
    var end = first
    while end < units.count, !units[end].endsAuthority(at: depth) {
      switch units[end].byte {
      // A word later in a message is no part of a host.
      case at where password != nil || !hasBlank: lastAt = end
      case UInt8(ascii: "["): isBracketed = true
      case UInt8(ascii: "]"): isBracketed = false
      case colon where !isBracketed && password == nil: password = end + 1
      default: hasBlank = hasBlank || units[end].isBlank
      }
      end += 1
    }
    if let lastAt { return lastAt > first ? first..<lastAt : nil }
    guard let password else { return nil }
    let port = units[password..<end].prefix { !$0.endsPort }
    guard !port.allSatisfy({ (0x30...0x39).contains($0.byte) }) else { return nil }
    // An invalid port: a password with a slash looks like this.
    return lastOfAll.flatMap { $0 > end ? first..<$0 : nil }
  }

  // MARK: Names of parameters

  private static let longestName = 64

  /// Complete names, in lower case without `-`, `_` and `.`. `hdnts`, `hdnea` and `hdntl` are
  /// Akamai's.
  static let names: Set<String> = [
    "sig", "hmac", "key", "auth", "authorization", "pwd", "pass", "passphrase", "sid", "session",
    "jwt", "bearer", "hdnts", "hdnea", "hdntl", "awsaccesskeyid", "ossaccesskeyid",
    "googleaccessid",
  ]

  /// Endings of names: `access_token`, `X-Amz-Signature`, `X-Amz-Security-Token`, `client_secret`,
  /// …
  static let nameEnds = [
    "signature", "token", "secret", "password", "passwd", "apikey", "accesskey", "secretkey",
    "privatekey", "subscriptionkey", "sessionid", "sessid", "credential", "credentials",
  ]

  private static func isSecret(_ units: [Unit], nameEndingAt end: Int) -> Bool {
    let letters = units[..<end].reversed().prefix { $0.isOfName }.prefix(longestName)
    let name = String(
      decoding: letters.reversed().map(\.byte).filter { !isIgnored($0) }.map {
        (0x41...0x5a).contains($0) ? $0 | 0x20 : $0
      }, as: UTF8.self)
    return names.contains(name) || nameEnds.contains { name.hasSuffix($0) }
  }

  private static func isIgnored(_ byte: UInt8) -> Bool { "-_.".utf8.contains(byte) }

  /// The last two letters of all names, in lower case.
  private static let endings = Set(
    (names + nameEnds).map { $0.utf8.suffix(2).reduce(0) { UInt16($0) << 8 | UInt16($1) } })

  // MARK: A quick look

  /// Whether a text may contain a secret. `false` is certain: the text has no `@` in any encoding
  /// and, if parameters count, no `=` in any encoding behind two characters that can end the name
  /// of a secret.
  static func mayHoldSecret(_ text: UnsafeBufferPointer<UInt8>, withParameters: Bool) -> Bool {
    for (index, byte) in text.enumerated() {
      if byte == at { return true }
      var isEquals = byte == equals
      if byte == percent, index + 2 < text.count {
        switch (text[index + 1], text[index + 2]) {
        // An encoded percent sign may begin anything.
        case (UInt8(ascii: "2"), UInt8(ascii: "5")), (UInt8(ascii: "4"), UInt8(ascii: "0")):
          return true
        case (UInt8(ascii: "3"), UInt8(ascii: "D")), (UInt8(ascii: "3"), UInt8(ascii: "d")):
          isEquals = true
        default: break
        }
      }
      if withParameters, isEquals, mayEndName(text[max(index - 3, 0)..<index]) { return true }
    }
    return false
  }

  /// Judges a name by its last characters.
  private static func mayEndName(_ end: Slice<UnsafeBufferPointer<UInt8>>) -> Bool {
    if end.contains(where: { $0 == percent || isIgnored($0) }) { return true }
    return endings.contains(end.suffix(2).reduce(0) { $0 << 8 | UInt16($1 | 0x20) })
  }

  static let at = UInt8(ascii: "@")
  static let colon = UInt8(ascii: ":")
  static let equals = UInt8(ascii: "=")
  static let percent = UInt8(ascii: "%")
}

/// A decoded character of a text: ASCII, or a byte of another character.
private struct Unit {
  let byte: UInt8
  /// How many times the character is percent-encoded; 3 for more.
  let depth: UInt8
  let start: Int
  let end: Int

  static let maximumDepth: UInt8 = 3

  static func all(of bytes: [UInt8]) -> [Unit] {
    var units: [Unit] = []
    units.reserveCapacity(bytes.count)
    while let unit = next(in: bytes, at: units.last?.end ?? 0) { units.append(unit) }
    return units
  }

  private static func next(in bytes: [UInt8], at start: Int) -> Unit? {
    guard start < bytes.count else { return nil }
    let plain = Unit(byte: bytes[start], depth: 0, start: start, end: start + 1)
    guard bytes[start] == SecretMask.percent else { return plain }
    var place = start + 1
    var depth = 1
    while place + 1 < bytes.count, bytes[place] == UInt8(ascii: "2"),
      bytes[place + 1] == UInt8(ascii: "5")
    {
      place += 2
      depth += 1
    }
    guard place + 1 < bytes.count, let high = bytes[place].hexadecimalValue,
      let low = bytes[place + 1].hexadecimalValue
    else { return plain }
    return Unit(
      byte: high << 4 | low, depth: min(UInt8(clamping: depth), maximumDepth), start: start,
      end: place + 2)
  }

  var isSlash: Bool { "/\\".utf8.contains(byte) }
  /// A blank that is not encoded.
  var isBlank: Bool { depth == 0 && " \n\r\t".utf8.contains(byte) }
  private var isBracket: Bool { depth == 0 && "\"<>".utf8.contains(byte) }
  var isOfName: Bool {
    byte.isDigit || byte.isLetter || "-_.".utf8.contains(byte)
  }

  /// Characters with a higher encoding level than the text around them belong to that text.
  func endsAuthority(at depth: UInt8) -> Bool {
    self.depth <= depth && (isSlash || "?#".utf8.contains(byte) || isBracket)
  }

  var endsPort: Bool { isBlank || "&',;)".utf8.contains(byte) }

  func endsValue(at depth: UInt8) -> Bool {
    self.depth <= depth
      && ("&#".utf8.contains(byte) || isBracket || isBlank || self.depth == 0 && byte == 0x27)
  }
}
