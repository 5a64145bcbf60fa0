// LogLimiter: limits repeated failures in the log.

/// Admits a number of similar failures per time window and counts the rest for a summary. A pure
/// state machine: the caller passes the time.
struct LogLimiter {
  /// The number of suppressed lines of one kind.
  struct Summary: Hashable {
    let kind: String
    let level: LogLevel
    let count: Int
  }

  private struct Window {
    let level: LogLevel
    let end: ContinuousClock.Instant
    var admitted = 0
    var heldBack = 0
  }

  /// The number of lines of a kind that a window admits.
  static let linesPerWindow = 20
  /// The length of a window.
  static let windowLength = Duration.seconds(10)
  /// The maximum number of kinds. Lines of further kinds are always admitted.
  static let kindLimit = 256

  private var windows: [String: Window] = [:]

  /// Returns the kind of a failure, from its message and error code. Returns `nil` for lines that
  /// report no failure.
  static func kind(
    of level: LogLevel, message: String, fields: KeyValuePairs<String, LogValue>
  ) -> String? {
    for (name, value) in fields where name == "error" {
      if case .string(let code) = value { return "\(message): \(code)" }
    }
    return level >= .warning ? message : nil
  }

  /// Returns whether to write a line. Other lines are counted.
  mutating func admits(
    _ kind: String, at level: LogLevel, now: ContinuousClock.Instant
  ) -> Bool {
    guard windows[kind] != nil || windows.count < Self.kindLimit else { return true }
    var window = windows[kind] ?? Window(level: level, end: now + Self.windowLength)
    let isAdmitted = window.admitted < Self.linesPerWindow
    if isAdmitted { window.admitted += 1 } else { window.heldBack += 1 }
    windows[kind] = window
    return isAdmitted
  }

  /// The time at which `summaries` next has a window to close.
  var nextSummary: ContinuousClock.Instant? { windows.values.map(\.end).min() }

  /// Closes expired windows, or all windows, and returns the suppressed lines by kind.
  mutating func summaries(now: ContinuousClock.Instant, all: Bool) -> [Summary] {
    let over = windows.filter { all || $0.value.end <= now }
    for kind in over.keys { windows[kind] = nil }
    return over.filter { $0.value.heldBack > 0 }.sorted { $0.key < $1.key }.map {
      Summary(kind: $0.key, level: $0.value.level, count: $0.value.heldBack)
    }
  }
}
