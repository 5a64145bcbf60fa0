// LogLimiter: which of many like failures are logged one by one. It decides and does nothing.

/// Admits so many failures of a kind in a window of time; the rest is counted, and summed up when the window ends.
struct LogLimiter {
  /// What the log says of failures that were held back.
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

  /// Lines of a kind that are written within a window.
  static let linesPerWindow = 20
  /// How long a window is.
  static let windowLength = Duration.seconds(10)
  /// Most kinds that are told apart; the lines of further ones are all admitted.
  static let kindLimit = 256

  private var windows: [String: Window] = [:]

  /// What a line is alike with: failures by their message and error code; `nil` for lines that say of no failure.
  static func kind(
    of level: LogLevel, _ message: String, _ fields: KeyValuePairs<String, LogValue>
  ) -> String? {
    for (name, value) in fields where name == "error" {
      if case .string(let code) = value { return "\(message): \(code)" }
    }
    return level >= .warning ? message : nil
  }

  /// Whether a line is written; otherwise it is counted.
  mutating func admits(
    _ kind: String, _ level: LogLevel, now: ContinuousClock.Instant
  ) -> Bool {
    if windows[kind] == nil {
      guard windows.count < Self.kindLimit else { return true }
      windows[kind] = Window(level: level, end: now + Self.windowLength)
    }
    guard var window = windows[kind] else { return true }
    let isAdmitted = window.admitted < Self.linesPerWindow
    if isAdmitted { window.admitted += 1 } else { window.heldBack += 1 }
    windows[kind] = window
    return isAdmitted
  }

  /// When `summaries` will next have something to do.
  var nextSummary: ContinuousClock.Instant? { windows.values.map(\.end).min() }

  /// Closes the windows that are over, or all; returns what was held back in them, by kind.
  mutating func summaries(now: ContinuousClock.Instant, all: Bool) -> [Summary] {
    let over = windows.filter { all || $0.value.end <= now }
    for kind in over.keys { windows[kind] = nil }
    return over.filter { $0.value.heldBack > 0 }.sorted { $0.key < $1.key }.map {
      Summary(kind: $0.key, level: $0.value.level, count: $0.value.heldBack)
    }
  }
}
