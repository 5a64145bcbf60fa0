// SubstitutionCounters: what the manager counts of answers that are other than what was made at first.

import Model
import Telemetry

/// Counts of what goes out in the place of something else.
final class SubstitutionCounters: Sendable {
  /// Sources kept as the answer, since what was made of them was larger.
  let sourcesInstead = Counter()
  /// Images made of larger variants.
  let derived = Counter()
  /// AVIFs made behind quicker answers.
  let avifs = Counter()
  /// Those that could not be.
  let avifsFailed = Counter()

  /// Adds the counts to `figures`.
  func add(to figures: inout FlightFigures) {
    figures.sourcesInstead = sourcesInstead.value
    figures.derived = derived.value
    figures.avifsLater = avifs.value
    figures.avifsFailed = avifsFailed.value
  }
}
