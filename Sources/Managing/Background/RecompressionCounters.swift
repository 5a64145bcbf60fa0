// RecompressionCounters: counts recompressed variants, what they gained and what they cost.

import Telemetry

/// Counters of recompressions.
final class RecompressionCounters: Sendable {
  /// Variants that could not become smaller.
  let unchanged = Counter()
  /// Variants whose recompression failed.
  let failed = Counter()
  private let smaller = Counter()
  private let before = Counter()
  private let after = Counter()
  private let microseconds = Counter()

  /// Counts a variant that became smaller, with its bytes.
  func note(before: Int, after: Int) {
    smaller.add()
    self.before.add(before)
    self.after.add(after)
  }

  /// Adds the processor time of a worker.
  func note(_ time: Duration) { microseconds.add(Int(time / .microseconds(1))) }

  /// The counts since the start.
  var figures: RecompressionFigures {
    var figures = RecompressionFigures()
    figures.smaller = smaller.value
    figures.unchanged = unchanged.value
    figures.failed = failed.value
    figures.bytesBefore = before.value
    figures.bytesAfter = after.value
    figures.processorSeconds = Double(microseconds.value) / 1e6
    return figures
  }
}
