// CombinedLine: a request's line in Apache's combined format.

/// The values of a line in Apache's combined log format: `%h %l %u %t "%r" %>s %b "%{Referer}i"
/// "%{User-Agent}i"`. Secrets are masked and long values cut, as in other lines.
public struct CombinedLine: Sendable {
  /// The client's address.
  public var client: String?
  /// The name of an operator's token.
  public var user: String?
  /// The method; `-`: unknown.
  public var method: String
  /// The target as received. A blank in it is escaped, so that a request has three words.
  public var target: String
  /// The version of HTTP, such as `HTTP/1.1`; `-`: unknown.
  public var version: String
  /// The response status.
  public var status: Int
  /// Bytes of the body.
  public var bytes: Int
  /// `Referer`.
  public var referer: String?
  /// `User-Agent`.
  public var userAgent: String?

  /// Creates a line.
  public init(
    client: String?, user: String?, method: String, target: String, version: String, status: Int,
    bytes: Int, referer: String?, userAgent: String?
  ) {
    self.client = client
    self.user = user
    self.method = method
    self.target = target
    self.version = version
    self.status = status
    self.bytes = bytes
    self.referer = referer
    self.userAgent = userAgent
  }

  /// Returns the line's bytes with its line break.
  func encoded(at seconds: Int) -> [UInt8] {
    var line: [UInt8] = []
    line.reserveCapacity(512)
    Self.append(client ?? "-", to: &line, isBare: true)
    line += " - ".utf8
    Self.append(user.flatMap { $0.isEmpty ? nil : $0 } ?? "-", to: &line, isBare: true)
    line += " [".utf8
    WallClock.append(seconds, as: "%d/%b/%Y:%T +0000", to: &line)
    line += "] \"".utf8
    Self.append(method, to: &line)
    line.append(0x20)
    Self.append(LogLine.shown(target), to: &line, isWord: true)
    line.append(0x20)
    Self.append(version, to: &line)
    line += "\" \(status) \(bytes == 0 ? "-" : "\(bytes)") \"".utf8
    Self.append(referer.map(LogLine.shown) ?? "-", to: &line)
    line += "\" \"".utf8
    Self.append(userAgent.map(LogLine.shown) ?? "-", to: &line)
    line += "\"\n".utf8
    return line
  }

  /// Escapes as Apache's `ap_escape_logitem` does: `\"` and `\\`, C's escapes for control
  /// characters that have one, and `\xhh` for other bytes that are not printable ASCII.
  private static func append(
    _ text: String, to line: inout [UInt8], isBare: Bool = false, isWord: Bool = false
  ) {
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "\""), UInt8(ascii: "\\"): line += [UInt8(ascii: "\\"), byte]
      case 0x08: line += "\\b".utf8
      case 0x09: line += "\\t".utf8
      case 0x0a: line += "\\n".utf8
      case 0x0b: line += "\\v".utf8
      case 0x0d: line += "\\r".utf8
      // Signs that end or begin a part of the line, outside of quotes.
      case 0x20 where isBare || isWord, UInt8(ascii: "[") where isBare,
        UInt8(ascii: "]") where isBare:
        line += ("\\x" + byte.hexadecimal(2)).utf8
      case 0x20..<0x7f: line.append(byte)
      default: line += ("\\x" + byte.hexadecimal(2)).utf8
      }
    }
  }
}
