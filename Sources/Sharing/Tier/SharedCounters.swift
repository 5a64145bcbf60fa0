// SharedCounters: the counts of a shared tier.

import Telemetry

/// Counts since the start.
final class SharedCounters: Sendable {
  /// Entries found.
  let hits = Counter()
  /// Entries that are absent.
  let misses = Counter()
  /// Entries that are purged, damaged or of another version.
  let refused = Counter()
  /// Entries written.
  let stores = Counter()
  /// Entries that were not written: the queue was full, or Redis or the bucket was away or full.
  let dropped = Counter()
}
