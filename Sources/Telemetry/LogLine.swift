// LogLine: formats log lines as JSON and as text.

/// The bytes of a log line while it is written. Each request logs a line, so it is written without
/// intermediate texts.
struct LogLine {
  /// The maximum length of a text value, in bytes. Each request logs a URL, which may be long.
  static let longestText = 512

  /// The line, as UTF-8.
  private(set) var bytes: [UInt8] = []

  /// Creates a line with its line break.
  init(
    _ level: LogLevel, message: String, fields: KeyValuePairs<String, LogValue>,
    format: LogFormat
  ) {
    bytes.reserveCapacity(640)
    switch format {
    case .json: appendJSON(level, message: message, fields: fields)
    case .text: appendText(level, message: message, fields: fields)
    case .logfmt: appendLogfmt(level, message: message, fields: fields)
    }
    bytes.append(UInt8(ascii: "\n"))
  }

  // MARK: Formats

  private mutating func appendJSON(
    _ level: LogLevel, message: String, fields: KeyValuePairs<String, LogValue>
  ) {
    append("{\"time\":\"")
    appendTime()
    append("\",\"level\":\"")
    append(level.rawValue)
    append("\",\"message\":")
    appendQuoted(SecretMask.masked(message))
    for (name, value) in fields {
      if case .absent = value { continue }
      append(",")
      appendQuoted(name)
      append(":")
      if case .string(let text) = value { appendQuoted(Self.shown(text)) } else { append(value) }
    }
    append("}")
  }

  private mutating func appendText(
    _ level: LogLevel, message: String, fields: KeyValuePairs<String, LogValue>
  ) {
    appendTime()
    append(" ")
    append(level.rawValue)
    for _ in level.rawValue.utf8.count...7 { append(" ") }
    appendEscaped(SecretMask.masked(message), alsoQuotes: false)
    append(fields) { line, text in
      // By bytes: a space with a combining mark is another `Character` but looks like a space.
      let needsQuotes =
        text.isEmpty || text.utf8.contains { $0 == 0x20 || $0 == 0x22 || $0 == 0x3d || $0 == 0x5c }
      if needsQuotes {
        line.appendQuoted(text)
      } else {
        line.appendEscaped(text, alsoQuotes: false)
      }
    }
  }

  private mutating func appendLogfmt(
    _ level: LogLevel, message: String, fields: KeyValuePairs<String, LogValue>
  ) {
    append("time=")
    appendTime()
    append(" level=")
    append(level.rawValue)
    append(" message=")
    appendValue(SecretMask.masked(message))
    append(fields) { $0.appendValue($1) }
  }

  /// Appends ` name=value` for each field that is present.
  private mutating func append(
    _ fields: KeyValuePairs<String, LogValue>, text: (inout LogLine, String) -> Void
  ) {
    for (name, value) in fields {
      if case .absent = value { continue }
      append(" ")
      append(name)
      append("=")
      if case .string(let shown) = value { text(&self, Self.shown(shown)) } else { append(value) }
    }
  }

  /// Appends a value of logfmt: as it is, or quoted if it has more than printable ASCII or a sign
  /// of the format.
  private mutating func appendValue(_ text: String) {
    let isPlain =
      !text.isEmpty
      && text.utf8.allSatisfy {
        (0x21..<0x7f).contains($0) && $0 != 0x22 && $0 != 0x3d && $0 != 0x5c
      }
    if isPlain { append(text) } else { appendQuoted(text) }
  }

  // MARK: Values

  /// Appends a value that is not a text.
  private mutating func append(_ value: LogValue) {
    switch value {
    case .int(let number): append(number.description)
    case .milliseconds(let duration): append(duration.millisecondsText)
    case .bool(let flag): append(flag ? "true" : "false")
    case .string, .absent: break
    }
  }

  /// Returns a text without its secrets (`SecretMask`), cut to the maximum length with an ellipsis
  /// at its end.
  static func shown(_ text: String) -> String {
    // Masked before it is cut, because the mark of a password may follow it.
    let text = SecretMask.masked(text)
    guard text.utf8.count > longestText else { return text }
    var beginning = String.UnicodeScalarView()
    var bytes = 0
    for scalar in text.unicodeScalars {
      bytes += UTF8.width(scalar)
      guard bytes <= longestText else { break }
      beginning.append(scalar)
    }
    return String(beginning) + "…"
  }

  /// Appends the time in UTC, to the millisecond (RFC 3339, section 5.6).
  private mutating func appendTime() {
    let milliseconds = WallClock.nanoseconds / 1_000_000
    WallClock.append(milliseconds / 1_000, as: "%FT%T.", to: &bytes)
    // With leading zeros.
    bytes += "\(1_000 + milliseconds % 1_000)".utf8.dropFirst()
    append("Z")
  }

  private mutating func append(_ text: String) { bytes.append(contentsOf: text.utf8) }

  private mutating func appendQuoted(_ text: String) {
    append("\"")
    appendEscaped(text, alsoQuotes: true)
    append("\"")
  }

  /// Escapes as JSON does (RFC 8259, section 7), so that a value cannot forge a line or what a
  /// terminal shows of it.
  ///
  /// Also escapes control characters above ASCII (U+0080–U+009F, of which U+009B begins a
  /// terminal's commands), other line ends (U+2028, U+2029) and marks that change the direction of
  /// text (Unicode's UAX #9).
  private mutating func appendEscaped(_ text: String, alsoQuotes: Bool) {
    // 0xc2, 0xd8 and 0xe2 are the first bytes of those above ASCII, and of harmless characters.
    let isSuspect = { (byte: UInt8) in
      byte < 0x20 || byte == 0x7f || byte == 0x22 || byte == 0x5c || byte == 0xc2
        || byte == 0xd8 || byte == 0xe2
    }
    var text = text
    guard text.withUTF8({ $0.contains(where: isSuspect) }) else { return append(text) }
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"" where alsoQuotes, "\\" where alsoQuotes: append("\\\(scalar)")
      case "\n": append("\\n")
      case "\r": append("\\r")
      case "\t": append("\\t")
      case _ where scalar.value < 0x20 || (0x7f..<0xa0).contains(scalar.value):
        append("\\u" + scalar.value.hexadecimal(4))
      case "\u{61c}", "\u{200e}", "\u{200f}", "\u{2028}"..."\u{202e}", "\u{2066}"..."\u{2069}":
        append("\\u" + scalar.value.hexadecimal(4))
      default: append(String(scalar))
      }
    }
  }
}
