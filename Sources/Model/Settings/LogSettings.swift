// LogSettings: the keys `log.…`: what the log has and how its lines look.

/// The severity of a log line.
public enum LogLevel: String, RankedCases, Sendable {
  /// Diagnostics, including lines for every request.
  case debug
  /// The server's life cycle, and requests that memory did not answer.
  case info
  /// A problem that the server tolerates.
  case warning
  /// An internal error of the server.
  case error
}

/// The format of log lines.
public enum LogFormat: String, CaseIterable, Sendable {
  /// `2026-11-21T01:02:03.004Z info  message key=value …`.
  case text
  /// One JSON object per line: `time`, `level`, `message`, then the fields.
  case json
  /// `time=2026-11-21T01:02:03.004Z level=info message=… key=value …`, as tools for logfmt read it.
  case logfmt
}

/// The format of the lines of requests.
public enum AccessFormat: String, CaseIterable, Sendable {
  /// As `log.format`.
  case log
  /// See `LogFormat.json`.
  case json
  /// See `LogFormat.logfmt`.
  case logfmt
  /// Apache's combined log format.
  case combined
}

/// The settings of the lines of requests, `log.access_…`.
public struct AccessSettings: Hashable, Sendable {
  /// The format of the lines.
  public var format = AccessFormat.log
  /// The file for the lines; empty: they are in the log.
  public var path = ""
}

/// The responses that are logged at info. Failures always are, and all others at debug.
public enum LoggedRequests: String, CaseIterable, Sendable {
  /// All responses, memory hits, `/stats` and `/metrics` included.
  case all
  /// All but memory hits, `/stats` and `/metrics`.
  case misses
  /// Only failures: status 400 and above, and responses that were cut off.
  case errors
}

/// The settings of the log, `log.…`.
public struct LogSettings: Hashable, Sendable {
  /// The format of the lines.
  public var format = LogFormat.text
  /// The lowest level that is written.
  public var level = LogLevel.info
  /// Which responses have a line at level info.
  public var requests = LoggedRequests.misses
  /// The lines of requests.
  public var access = AccessSettings()

  /// Creates the default settings.
  public init() {}
}
