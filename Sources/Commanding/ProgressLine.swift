// ProgressLine: prints the progress of a prefetch.

import Core

/// The progress of a prefetch: one updated line on a terminal, or occasional lines in a log.
struct ProgressLine {
  /// The interval between two lines without a terminal.
  private static let interval = Duration.seconds(5)

  private let console: Console
  private let now: () -> ContinuousClock.Instant
  private var last: ContinuousClock.Instant
  /// Whether the terminal's line is not finished.
  private var isOpen = false

  init(on console: Console, now: @escaping () -> ContinuousClock.Instant) {
    self.console = console
    self.now = now
    last = now()
  }

  /// Shows the progress if it is due.
  mutating func show(_ status: PrefetchStatus) {
    if let columns = console.columns() {
      // Returns to the start of the line and erases the rest (ECMA-48, EL). The last column stays
      // free, because some terminals wrap after it.
      console.errors("\r\(PrefetchReport.progress(status, width: columns - 1))\u{1B}[K")
      isOpen = true
    } else if now() - last >= Self.interval {
      last = now()
      console.errors(PrefetchReport.progress(status, width: 120) + "\n")
    }
  }

  /// Finishes the terminal's line.
  mutating func end() {
    if isOpen { console.errors("\n") }
    isOpen = false
  }
}
