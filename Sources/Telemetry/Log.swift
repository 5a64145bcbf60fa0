// Log: writes structured log lines as JSON or text.

import Glibc

/// A value in a log line.
public enum LogValue: Sendable, ExpressibleByStringLiteral, ExpressibleByStringInterpolation,
  ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral
{
  /// A text; line breaks and control characters are escaped.
  case string(String)
  /// An integer.
  case int(Int)
  /// Milliseconds with three decimals. The field's name ends in `_ms`.
  case milliseconds(Duration)
  /// A Boolean.
  case bool(Bool)
  /// No value: the line omits the field.
  case absent

  /// Returns a text value, or `absent` for `nil`.
  public static func string(ifPresent text: String?) -> LogValue { text.map(string) ?? .absent }

  /// Creates a text value.
  public init(stringLiteral value: String) { self = .string(value) }
  /// Creates an integer value.
  public init(integerLiteral value: Int) { self = .int(value) }
  /// Creates a Boolean value.
  public init(booleanLiteral value: Bool) { self = .bool(value) }
}

/// Writes log lines. The server shares one log.
///
/// With a queue (`LogQueue`), callers never wait for the log's reader. Without a queue, each line
/// is one `write(2)` on the caller's thread, for commands and tests.
public struct Log: Sendable {
  /// The format of log lines.
  public typealias Format = LogFormat

  /// The lowest level that is written.
  public var level: LogLevel { queue?.level ?? ownLevel }
  private let ownLevel: LogLevel
  private let format: Format
  private let descriptor: CInt
  private let queue: LogQueue?
  /// Where the lines of requests go; `nil`: they are like other lines.
  let access: AccessLog?

  /// Creates a log that callers write synchronously to an open descriptor, by default standard
  /// error.
  public init(level: LogLevel = .info, format: Format = .text, descriptor: CInt = STDERR_FILENO) {
    ownLevel = level
    self.format = format
    self.descriptor = descriptor
    queue = nil
    access = nil
  }

  /// Creates a log that a queue's thread writes, in the queue's format, and sets the level of all
  /// logs of the queue.
  ///
  /// - Parameter access: where the lines of requests go; `nil`: they are like other lines.
  public init(level: LogLevel, queue: LogQueue, access: AccessLog? = nil) {
    self.access = access
    ownLevel = level
    queue.level = level
    format = queue.format
    descriptor = -1
    self.queue = queue
  }

  /// A log that writes nothing, for tests.
  public static let silent = Log(level: .error, format: .text, descriptor: -1)

  /// Logs a line at level `debug`.
  public func debug(
    _ message: @autoclosure () -> String,
    fields: @autoclosure () -> KeyValuePairs<String, LogValue> = [:]
  ) { write(.debug, message: message, fields: fields) }

  /// Logs a line at level `info`.
  public func info(
    _ message: @autoclosure () -> String,
    fields: @autoclosure () -> KeyValuePairs<String, LogValue> = [:]
  ) { write(.info, message: message, fields: fields) }

  /// Logs a line at level `warning`.
  public func warning(
    _ message: @autoclosure () -> String,
    fields: @autoclosure () -> KeyValuePairs<String, LogValue> = [:]
  ) { write(.warning, message: message, fields: fields) }

  /// Logs a line at level `error`.
  public func error(
    _ message: @autoclosure () -> String,
    fields: @autoclosure () -> KeyValuePairs<String, LogValue> = [:]
  ) { write(.error, message: message, fields: fields) }

  /// Writes a line if its level is logged.
  func write(
    _ level: LogLevel, message: () -> String, fields: () -> KeyValuePairs<String, LogValue>
  ) {
    guard level >= self.level else { return }
    if let queue { return queue.add(level, message: message(), fields: fields()) }
    guard descriptor >= 0 else { return }
    let line = LogLine(level, message: message(), fields: fields(), format: format)
    // A log that cannot be written must not stop the server, so the line is lost.
    _ = line.bytes.withUnsafeBytes { Self.write($0, to: descriptor) }
  }

  /// Waits until all queued lines are written, or for `limit`. Call before the process exits.
  public func flush(within limit: Duration) {
    _ = queue?.flush(within: limit)
    if access?.file != nil { _ = access?.queue.flush(within: limit) }
  }

  /// The figures of the log, those of an access file included.
  public var figures: Figures {
    var figures = Figures()
    queue?.add(to: &figures)
    if let access, access.file != nil { access.queue.add(to: &figures) }
    return figures
  }

  /// Writes all bytes and returns how many were written before an error. Blocks until the reader
  /// accepts them.
  static func write(_ bytes: UnsafeRawBufferPointer, to descriptor: CInt) -> Int {
    var rest = bytes
    while let start = rest.baseAddress, !rest.isEmpty {
      let written = Glibc.write(descriptor, start, rest.count)
      if written < 0 && errno == EINTR { continue }
      if written < 0 && errno == EAGAIN {
        // Another process may have made the descriptor non-blocking.
        var waiting = Poll([(descriptor, .writable)])
        waiting.wait(milliseconds: -1)
        continue
      }
      guard written > 0 else { return bytes.count - rest.count }
      rest = UnsafeRawBufferPointer(rebasing: rest[written...])
    }
    return bytes.count
  }
}

extension Duration {
  /// Milliseconds with three decimals, as in `Server-Timing` and log lines: `12.345`.
  public var millisecondsText: String {
    let microseconds = wholeNanoseconds / 1_000
    let fraction = String(microseconds % 1_000)
    return "\(microseconds / 1_000)." + String(repeating: "0", count: 3 - fraction.count) + fraction
  }

  /// Seconds as a floating-point number.
  public var inSeconds: Double {
    Double(components.seconds) + Double(components.attoseconds) / 1e18
  }
}
