// PositionFile: what the disk has refused of purges and of the position. Pure.

/// Whether the file may have the position. It never has more than what is durable: a crash applies the rest again.
struct PositionFile {
  /// Purges in force that the disk refused, so far.
  private(set) var refused = 0
  /// How many of these it has taken since.
  private var recorded = 0
  /// Whether the file has the position of the last attempt.
  var isWritten = true
  /// When a failed attempt is repeated.
  var retry = ContinuousClock.now

  /// Whether all applied purges are durable.
  var isDurable: Bool { recorded == refused }

  /// Notes that a purge is in force and not durable.
  mutating func refuse() { refused += 1 }

  /// Notes that the purges up to a number of refused ones are durable. A later one may have been refused meanwhile.
  mutating func record(upTo number: Int) { recorded = max(recorded, number) }

  /// Whether there is something to do.
  func isDue(now: ContinuousClock.Instant) -> Bool { !(isDurable && isWritten) && now >= retry }
}
