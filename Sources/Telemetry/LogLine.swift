// LogLine: formats log lines as JSON and as text.

import FoundationEssentials
import Model

extension Log.Format {
  /// The maximum length of a text value, in bytes. Each request logs a URL, which may be long.
  static let longestText = 512

  /// Returns a line with its line break.
  func line(
    _ level: LogLevel, _ message: String, _ fields: KeyValuePairs<String, LogValue>
  ) -> String {
    let line =
      self == .json
      ? Self.jsonLine(level, message, fields) : Self.textLine(level, message, fields)
    return line + "\n"
  }

  /// Returns a text without its secrets (`SecretMask`), cut to the maximum length with an ellipsis at its end.
  private static func shown(_ text: String) -> String {
    // Masked before it is cut, because the mark of a password may follow it.
    let text = SecretMask.masked(text)
    guard text.utf8.count > longestText else { return text }
    var (beginning, bytes) = (String.UnicodeScalarView(), 0)
    for scalar in text.unicodeScalars {
      bytes += UTF8.width(scalar)
      guard bytes <= longestText else { break }
      beginning.append(scalar)
    }
    return String(beginning) + "…"
  }

  private static func jsonLine(
    _ level: LogLevel, _ message: String, _ fields: KeyValuePairs<String, LogValue>
  ) -> String {
    var line = "{\"time\":\"\(timestamp())\",\"level\":\"\(level.rawValue)\",\"message\":"
    line += quoted(SecretMask.masked(message))
    for (name, value) in fields {
      if case .absent = value { continue }
      line += ",\(quoted(name)):"
      switch value {
      case .string(let text): line += quoted(shown(text))
      case .int(let number): line += "\(number)"
      case .milliseconds(let duration): line += duration.millisecondsText
      case .bool(let flag): line += flag ? "true" : "false"
      case .absent: break
      }
    }
    return line + "}"
  }

  private static func textLine(
    _ level: LogLevel, _ message: String, _ fields: KeyValuePairs<String, LogValue>
  ) -> String {
    let padding = String(repeating: " ", count: 7 - level.rawValue.count)
    var line = "\(timestamp()) \(level.rawValue)\(padding) \(escaped(SecretMask.masked(message)))"
    for (name, value) in fields {
      if case .absent = value { continue }
      line += " \(name)="
      switch value {
      case .string(let text):
        let text = shown(text)
        // By bytes: a space with a combining mark is another `Character` but looks like a space.
        let needsQuotes =
          text.isEmpty
          || text.utf8.contains { $0 == 0x20 || $0 == 0x22 || $0 == 0x3d || $0 == 0x5c }
        line += needsQuotes ? quoted(text) : escaped(text)
      case .int(let number): line += "\(number)"
      case .milliseconds(let duration): line += duration.millisecondsText
      case .bool(let flag): line += flag ? "true" : "false"
      case .absent: break
      }
    }
    return line
  }

  private static func quoted(_ text: String) -> String {
    "\"" + escaped(text, alsoQuotes: true) + "\""
  }

  /// Escapes as JSON does (RFC 8259, section 7), so that a value cannot forge a line or what a terminal shows of it.
  ///
  /// Also escapes control characters above ASCII (U+0080–U+009F, of which U+009B begins a terminal's commands), other
  /// line ends (U+2028, U+2029) and marks that change the direction of text (Unicode's UAX #9).
  private static func escaped(_ text: String, alsoQuotes: Bool = false) -> String {
    // 0xc2, 0xd8 and 0xe2 are the first bytes of those above ASCII, and of harmless characters.
    let isSuspect = { (byte: UInt8) in
      byte < 0x20 || byte == 0x7f || byte == 0x22 || byte == 0x5c || byte == 0xc2
        || byte == 0xd8 || byte == 0xe2
    }
    guard text.utf8.contains(where: isSuspect) else { return text }
    var result = ""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"" where alsoQuotes, "\\" where alsoQuotes: result += "\\\(scalar)"
      case "\n": result += "\\n"
      case "\r": result += "\\r"
      case "\t": result += "\\t"
      case _ where scalar.value < 0x20 || (0x7f..<0xa0).contains(scalar.value):
        result += scalar.value < 0x10 ? "\\u000" : "\\u00"
        result += String(scalar.value, radix: 16)
      case "\u{61c}", "\u{200e}", "\u{200f}", "\u{2028}"..."\u{202e}", "\u{2066}"..."\u{2069}":
        result += "\\u" + (scalar.value < 0x1000 ? "0" : "") + String(scalar.value, radix: 16)
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result
  }

  private static func timestamp() -> String {
    Date.now.formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true))
  }
}
