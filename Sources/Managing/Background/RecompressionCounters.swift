// RecompressionCounters: counts recompressed variants, what they gained and what they cost.

import Core

/// Counters of recompressions.
final class RecompressionCounters: Sendable {
  private let smaller = Counter(
    "smaller", "pictor_recompressions_total", "Recompressed variants, by result.",
    ["result": "smaller"])
  let unchanged = Counter(
    "unchanged", "pictor_recompressions_total", "Variants that could not become smaller.",
    ["result": "unchanged"])
  let failed = Counter(
    "failed", "pictor_recompressions_total", "Variants whose recompression failed.",
    ["result": "failed"])
  private let before = Counter(
    "bytes_before", "pictor_recompressed_bytes_total", "Bytes of variants that became smaller.",
    ["time": "before"])
  private let after = Counter(
    "bytes_after", "pictor_recompressed_bytes_total", "Bytes of the smaller variants.",
    ["time": "after"])
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
  var figures: Figures {
    var figures = Figures(of: self)
    figures.add(
      "processor_seconds", Double(microseconds.value) / 1e6,
      "pictor_recompression_processor_seconds_total",
      "Processor time of workers that recompressed variants.")
    return figures
  }
}
