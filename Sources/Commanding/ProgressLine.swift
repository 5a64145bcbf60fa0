// ProgressLine: how far a prefetch is, for whoever looks on.

import Model

/// A prefetch's progress: over and over in one line of a terminal, or now and then in a log.
struct ProgressLine {
  /// How long nothing is said where nobody looks at a terminal.
  private static let interval = Duration.seconds(5)

  private let console: Console
  private let now: () -> ContinuousClock.Instant
  private var last: ContinuousClock.Instant
  /// Whether a line of the terminal is begun.
  private var isOpen = false

  init(on console: Console, now: @escaping () -> ContinuousClock.Instant) {
    (self.console, self.now, last) = (console, now, now())
  }

  /// Shows how far it is, where it is time for that.
  mutating func show(_ status: PrefetchStatus) {
    if let columns = console.columns() {
      // Back to the beginning, and what was longer there is erased (ECMA-48, EL). The last column stays free: some
      // terminals break the line after it.
      console.errors("\r\(PrefetchReport.progress(status, width: columns - 1))\u{1B}[K")
      isOpen = true
    } else if now() - last >= Self.interval {
      last = now()
      console.errors(PrefetchReport.progress(status, width: 120) + "\n")
    }
  }

  /// Leaves the line to what comes next.
  mutating func end() {
    if isOpen { console.errors("\n") }
    isOpen = false
  }
}
