// Log: structured lines for operators, one JSON object or one line of text each.

import Glibc

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
/// With a queue (`LogQueue`), no caller waits for whoever reads the log. Without one each line is one `write(2)` on the
/// caller's thread, for commands and tests.
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
  private let queue: LogQueue?

  /// A log on an open descriptor, standard error by default, written to by the callers.
  public init(level: LogLevel = .info, format: Format = .text, descriptor: CInt = STDERR_FILENO) {
    (self.level, self.format, self.descriptor, queue) = (level, format, descriptor, nil)
  }

  /// A log that is written by the thread of a queue, in the queue's format.
  public init(level: LogLevel, queue: LogQueue) {
    (self.level, format, descriptor) = (level, queue.format, -1)
    self.queue = queue
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
    guard level >= self.level else { return }
    if let queue { return queue.add(level, message(), fields()) }
    guard descriptor >= 0 else { return }
    var line = format.line(level, message(), fields())
    // A log that cannot be written must not stop the server: the line is lost.
    _ = line.withUTF8 { Self.write(UnsafeRawBufferPointer($0), to: descriptor) }
  }

  /// Waits until what was logged is written, for at most so long: before the process ends by itself.
  public func flush(within limit: Duration) { _ = queue?.flush(within: limit) }

  /// What the queue has done so far.
  public var figures: LogFigures { queue?.figures ?? LogFigures() }

  /// Writes all bytes, however often that has to be tried; tells whether it did. Waits for whoever reads.
  static func write(_ bytes: UnsafeRawBufferPointer, to descriptor: CInt) -> Bool {
    var rest = bytes
    while let start = rest.baseAddress, !rest.isEmpty {
      let written = Glibc.write(descriptor, start, rest.count)
      if written < 0 && errno == EINTR { continue }
      if written < 0 && errno == EAGAIN {
        // A descriptor that another process made non-blocking.
        var waiting = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        _ = poll(&waiting, 1, -1)
        continue
      }
      guard written > 0 else { return false }
      rest = UnsafeRawBufferPointer(rebasing: rest[written...])
    }
    return true
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
