// Log: structured lines for operators, one JSON object or one line of text each.

import FoundationEssentials
import Glibc
import Synchronization

/// How much a log line matters.
public enum LogLevel: String, CaseIterable, Comparable, Sendable {
  /// For finding out what the server does; says something about every request.
  case debug
  /// The server's life and what was not answered from memory.
  case info
  /// Something is wrong and the server goes on without it.
  case warning
  /// A fault of the server's own.
  case error

  /// The less it matters, the less it is.
  public static func < (left: LogLevel, right: LogLevel) -> Bool { left.rank < right.rank }

  private var rank: Int {
    switch self {
    case .debug: 0
    case .info: 1
    case .warning: 2
    case .error: 3
    }
  }
}

/// A value in a log line.
public enum LogValue: Sendable, ExpressibleByStringLiteral, ExpressibleByStringInterpolation,
  ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral
{
  /// Text; line breaks and control characters are escaped.
  case string(String)
  /// A whole number.
  case int(Int)
  /// Milliseconds, with three decimals; the field's name ends in `_ms`.
  case milliseconds(Duration)
  /// Yes or no.
  case bool(Bool)
  /// Nothing to say: the field is left out of the line.
  case absent

  /// Text, where there is any.
  public static func string(ifPresent text: String?) -> LogValue { text.map(string) ?? .absent }

  /// Text.
  public init(stringLiteral value: String) { self = .string(value) }
  /// A whole number.
  public init(integerLiteral value: Int) { self = .int(value) }
  /// Yes or no.
  public init(booleanLiteral value: Bool) { self = .bool(value) }
}

/// Writes log lines; one for the whole server, passed to whoever has something to say.
///
/// A line is one `write(2)`, so lines of several threads never mix. A reader that does not keep up delays the writers:
/// that is what operators expect of a log, and why nothing is logged at `info` on the way of a memory hit.
public struct Log: Sendable {
  /// How lines look.
  public enum Format: String, CaseIterable, Sendable {
    /// One JSON object a line: `time`, `level`, `message`, then the fields.
    case json
    /// `2026-11-21T01:02:03.004Z info  message key=value …`.
    case text
  }

  /// The least level that is written.
  public let level: LogLevel
  private let format: Format
  private let descriptor: CInt

  /// A log on an open descriptor, standard error by default.
  public init(level: LogLevel = .info, format: Format = .text, descriptor: CInt = STDERR_FILENO) {
    (self.level, self.format, self.descriptor) = (level, format, descriptor)
  }

  /// A log that writes nothing, for tests.
  public static let silent = Log(level: .error, format: .text, descriptor: -1)

  /// See `LogLevel.debug`.
  public func debug(
    _ message: @autoclosure () -> String,
    _ fields: @autoclosure () -> KeyValuePairs<String, LogValue> = [:]
  ) { write(.debug, message, fields) }

  /// See `LogLevel.info`.
  public func info(
    _ message: @autoclosure () -> String,
    _ fields: @autoclosure () -> KeyValuePairs<String, LogValue> = [:]
  ) { write(.info, message, fields) }

  /// See `LogLevel.warning`.
  public func warning(
    _ message: @autoclosure () -> String,
    _ fields: @autoclosure () -> KeyValuePairs<String, LogValue> = [:]
  ) { write(.warning, message, fields) }

  /// See `LogLevel.error`.
  public func error(
    _ message: @autoclosure () -> String,
    _ fields: @autoclosure () -> KeyValuePairs<String, LogValue> = [:]
  ) { write(.error, message, fields) }

  private func write(
    _ level: LogLevel, _ message: () -> String, _ fields: () -> KeyValuePairs<String, LogValue>
  ) {
    guard level >= self.level, descriptor >= 0 else { return }
    var line =
      format == .json
      ? jsonLine(level, message(), fields()) : textLine(level, message(), fields())
    line += "\n"
    line.withUTF8 { bytes in
      var rest = UnsafeRawBufferPointer(bytes)
      while let start = rest.baseAddress, !rest.isEmpty {
        let written = Glibc.write(descriptor, start, rest.count)
        if written < 0 && errno == EINTR { continue }
        // A log that cannot be written must not stop the server: the line is lost.
        guard written > 0 else { return }
        rest = UnsafeRawBufferPointer(rebasing: rest[written...])
      }
    }
  }

  private func jsonLine(
    _ level: LogLevel, _ message: String, _ fields: KeyValuePairs<String, LogValue>
  ) -> String {
    var line = "{\"time\":\"\(timestamp())\",\"level\":\"\(level.rawValue)\",\"message\":"
    line += quoted(message)
    for (name, value) in fields {
      if case .absent = value { continue }
      line += ",\(quoted(name)):"
      switch value {
      case .string(let text): line += quoted(text)
      case .int(let number): line += "\(number)"
      case .milliseconds(let duration): line += duration.millisecondsText
      case .bool(let flag): line += flag ? "true" : "false"
      case .absent: break
      }
    }
    return line + "}"
  }

  private func textLine(
    _ level: LogLevel, _ message: String, _ fields: KeyValuePairs<String, LogValue>
  ) -> String {
    let padding = String(repeating: " ", count: 7 - level.rawValue.count)
    var line = "\(timestamp()) \(level.rawValue)\(padding) \(escaped(message))"
    for (name, value) in fields {
      if case .absent = value { continue }
      line += " \(name)="
      switch value {
      case .string(let text):
        // By bytes: a space with a combining mark behind it is another character, and looks like a space.
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

  private func quoted(_ text: String) -> String {
    "\"" + escaped(text, alsoQuotes: true) + "\""
  }

  /// Escapes as JSON does (RFC 8259, section 7), so that nobody can forge a line, nor with the control characters
  /// behind ASCII (U+0080–U+009F, of which U+009B begins a terminal's commands) what an operator sees of it.
  private func escaped(_ text: String, alsoQuotes: Bool = false) -> String {
    // 0xc2 is the first byte of those behind ASCII, and of a few harmless ones.
    let isSuspect = { (byte: UInt8) in
      byte < 0x20 || byte == 0x7f || byte == 0x22 || byte == 0x5c || byte == 0xc2
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
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result
  }

  private func timestamp() -> String {
    Date.now.formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true))
  }
}

extension Duration {
  /// Milliseconds with three decimals, as in `Server-Timing` and log lines: `12.345`.
  public var millisecondsText: String {
    let microseconds =
      components.seconds * 1_000_000 + components.attoseconds / 1_000_000_000_000
    let fraction = String(microseconds % 1_000)
    return "\(microseconds / 1_000)." + String(repeating: "0", count: 3 - fraction.count) + fraction
  }

  /// Seconds as a floating-point number.
  public var inSeconds: Double {
    Double(components.seconds) + Double(components.attoseconds) / 1e18
  }
}
