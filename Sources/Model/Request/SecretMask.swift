// SecretMask: masks user information and secret parameters of URLs in logs and messages.

/// Masks secrets of URLs, anywhere in a text.
///
/// - User information (RFC 3986, section 3.2.1), with and without a scheme in front, even if the
///   URL is invalid because characters of the password are not encoded.
/// - Values of parameters with secret names: `sig`, `token`, `X-Amz-Signature`, `password`, …
///
/// Both are also found in text that is percent-encoded any number of times, as a URL in a parameter
/// of `/image` is. In doubt the text is masked. Takes time linear in the text's length.
public enum SecretMask {
  /// The replacement of a secret.
  public static let mark = "***"

  /// Returns the text with its secrets masked. Masking twice changes nothing.
  public static func masked(_ text: String) -> String { mask(text, withParameters: true) }

  /// Does the same for a text without its end, where user information may have started.
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
    let found =
      userInformation(in: units) + (withParameters ? parameterValues(in: units) : [])
    guard !found.isEmpty else { return text }
    var result: [UInt8] = []
    var copied = 0
    for range in found.sorted(by: { $0.lowerBound < $1.lowerBound }) {
      let start = units[range.lowerBound].start
      let end = units[range.upperBound - 1].end
      guard end > copied else { continue }
      if start >= copied {
        result += bytes[copied..<start]
        result += mark.utf8
      }
      copied = end
    }
    result += bytes[copied...]
    return String(decoding: result, as: UTF8.self)
  }

  // MARK: User information

  private static func userInformation(in units: [Unit]) -> [Range<Int>] {
    var found: [Range<Int>] = []
    var context = Context()
    let lastAt = units.lastIndex { $0.byte == at }
    for index in units.indices {
      let unit = units[index]
      if unit.byte == at, let start = context.userStart(at: unit.depth, before: index, units) {
        found.append(start..<index)
      }
      context.read(unit, at: index, before: index + 1 < units.count ? units[index + 1] : nil)
      if context.beginsAuthority(units, at: index),
        let range = authorityUser(
          in: units, from: index + 1, depth: unit.depth, lastOfAll: lastAt)
      {
        found.append(range)
      }
    }
    return found
  }

  /// Returns the user information of an authority that begins at `first`.
  private static func authorityUser(
    in units: [Unit], from first: Int, depth: UInt8, lastOfAll: Int?
  ) -> Range<Int>? {
    var lastAt: Int?
    var colon: Int?
    var isBracketed = false
    var end = first
    while end < units.count, !units[end].endsAuthority(at: depth) {
      switch units[end].byte {
      case at: lastAt = end
      case UInt8(ascii: "["): isBracketed = true
      case UInt8(ascii: "]"): isBracketed = false
      case UInt8(ascii: ":") where !isBracketed && colon == nil: colon = end
      default: break
      }
      end += 1
    }
    if let lastAt { return lastAt > first ? first..<lastAt : nil }
    guard let colon else { return nil }
    let port = units[(colon + 1)..<end].prefix { !$0.endsPort }
    guard !port.allSatisfy({ (0x30...0x39).contains($0.byte) }) else { return nil }
    // An invalid port: a password with a slash looks like this.
    return lastOfAll.flatMap { $0 > end ? first..<$0 : nil }
  }

  // MARK: Parameters

  private static func parameterValues(in units: [Unit]) -> [Range<Int>] {
    var found: [Range<Int>] = []
    var context = Context()
    var masked = 0
    for index in units.indices {
      let unit = units[index]
      context.read(unit, at: index, before: index + 1 < units.count ? units[index + 1] : nil)
      guard unit.byte == equals, index >= masked, isSecret(nameEndingAt: index, in: units) else {
        continue
      }
      let isQuoted = context.isQuoted
      let end =
        units[(index + 1)...].firstIndex { $0.endsValue(at: unit.depth, isQuoted: isQuoted) }
        ?? units.count
      if end > index + 1 { found.append((index + 1)..<end) }
      masked = end
    }
    return found
  }

  private static func isSecret(nameEndingAt end: Int, in units: [Unit]) -> Bool {
    var name: [UInt8] = []
    for unit in units[..<end].reversed() {
      let byte = unit.byte
      switch byte {
      case UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."): continue
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"):
        name.append(byte)
      case UInt8(ascii: "A")...UInt8(ascii: "Z"): name.append(byte | 0x20)
      default: return isSecret(String(decoding: name.reversed(), as: UTF8.self))
      }
      guard name.count <= longestName else { return false }
    }
    return isSecret(String(decoding: name.reversed(), as: UTF8.self))
  }

  /// Whether a parameter's value is masked, by its name in lower case without `-`, `_` and `.`.
  private static func isSecret(_ name: String) -> Bool {
    names.contains(name) || nameEnds.contains { name.hasSuffix($0) }
  }

  private static let longestName = 64

  /// Complete names. `hdnts`, `hdnea` and `hdntl` are Akamai's.
  static let names: Set<String> = [
    "sig", "hmac", "key", "auth", "authorization", "pwd", "pass", "passphrase", "sid", "session",
    "jwt", "bearer", "hdnts", "hdnea", "hdntl", "awsaccesskeyid", "ossaccesskeyid",
    "googleaccessid",
  ]

  /// Endings of names: `access_token`, `X-Amz-Signature`, `X-Amz-Security-Token`, …
  static let nameEnds = [
    "signature", "token", "secret", "password", "passwd", "apikey", "accesskey", "secretkey",
    "privatekey", "subscriptionkey", "sessionid", "sessid", "credential", "credentials",
  ]

  static let at = UInt8(ascii: "@")
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
    var index = 0
    while index < bytes.count {
      units.append(next(in: bytes, at: index))
      index = units[units.count - 1].end
    }
    return units
  }

  private static func next(in bytes: [UInt8], at start: Int) -> Unit {
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
    guard place + 1 < bytes.count, let high = PercentEncoding.hexadecimalDigit(bytes[place]),
      let low = PercentEncoding.hexadecimalDigit(bytes[place + 1])
    else { return plain }
    return Unit(
      byte: high << 4 | low, depth: min(UInt8(clamping: depth), maximumDepth), start: start,
      end: place + 2)
  }

  var isSlash: Bool { byte == UInt8(ascii: "/") || byte == UInt8(ascii: "\\") }
  /// A blank that is not encoded. It ends a quotation of a message.
  var isBlank: Bool { depth == 0 && (byte == 0x20 || byte == 0x0a || byte == 0x0d || byte == 0x09) }
  private var isBracket: Bool {
    depth == 0
      && (byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "<") || byte == UInt8(ascii: ">"))
  }

  /// Characters with a higher encoding level than the text around them belong to that text.
  func endsAuthority(at depth: UInt8) -> Bool {
    guard self.depth <= depth else { return false }
    return isSlash || byte == UInt8(ascii: "?") || byte == UInt8(ascii: "#") || isBlank || isBracket
  }

  var endsPort: Bool { "&',;)".utf8.contains(byte) }

  func endsValue(at depth: UInt8, isQuoted: Bool) -> Bool {
    guard self.depth <= depth else { return false }
    return byte == UInt8(ascii: "&") || byte == UInt8(ascii: "#") || isBracket
      || (isQuoted ? byte == UInt8(ascii: "'") && self.depth == 0 : isBlank)
  }
}

/// The state of the scan in front of a place.
private struct Context {
  /// The last character that user information cannot contain, by its highest encoding level.
  private var boundaries = (-1, -1, -1, -1)
  private var lastColon = -1
  private var previous: Unit?
  private var beforePrevious: Unit?
  /// Whether a quotation has begun. Messages quote a URL: `the URL 'http://…' cannot be used`.
  private(set) var isQuoted = false
  /// The result of `userStart` after a boundary. Many signs in a row would search again for each.
  private var known: (boundary: Int, start: Int)?

  /// Reads the next character.
  mutating func read(_ unit: Unit, at index: Int, before next: Unit?) {
    if unit.byte == UInt8(ascii: "'"), unit.depth == 0 {
      if !isQuoted {
        isQuoted = previous.map { $0.isBlank || $0.byte == SecretMask.equals } ?? true
      } else if next.map({ $0.isBlank || ":,;.)".utf8.contains($0.byte) }) ?? true {
        isQuoted = false
      }
    }
    if unit.byte == UInt8(ascii: ":") { lastColon = index }
    let isBoundary =
      unit.endsAuthority(at: Unit.maximumDepth) && !(isQuoted && unit.isBlank)
      || unit.byte == UInt8(ascii: "&")
    if isBoundary {
      if unit.depth == 0 { boundaries.0 = index }
      if unit.depth <= 1 { boundaries.1 = index }
      if unit.depth <= 2 { boundaries.2 = index }
      boundaries.3 = index
    }
    beforePrevious = previous
    previous = unit
  }

  /// Whether the last character is the second slash in front of an authority.
  func beginsAuthority(_ units: [Unit], at index: Int) -> Bool {
    guard let previous, let beforePrevious, previous.isSlash, beforePrevious.isSlash else {
      return false
    }
    guard index >= 2 else { return true }
    return units[index - 2].isBlank || ":='\"(,".utf8.contains(units[index - 2].byte)
  }

  /// Returns the start of user information without an authority's slashes, `user:password@host`.
  mutating func userStart(at depth: UInt8, before index: Int, _ units: [Unit]) -> Int? {
    let boundary =
      switch depth {
      case 0: boundaries.0
      case 1: boundaries.1
      case 2: boundaries.2
      default: boundaries.3
      }
    guard lastColon > boundary, lastColon < index else { return nil }
    if let known, known.boundary == boundary { return known.start < index ? known.start : nil }
    var start = boundary + 1
    // The name of the parameter that contains it as its value.
    if let sign = units[start..<index].firstIndex(where: {
      $0.byte == SecretMask.equals || $0.byte == UInt8(ascii: ":")
    }), units[sign].byte == SecretMask.equals {
      start = sign + 1
    }
    known = (boundary, start)
    return start < index ? start : nil
  }
}
