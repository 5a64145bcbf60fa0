// SubstitutionCounters: counts variants that replace the one a request would normally get.

import Model
import Telemetry

/// Counters for substituted variants.
final class SubstitutionCounters: Sendable {
  /// Sources served because the encoded image was larger.
  let sourcesInstead = Counter()
  /// Variants derived from larger variants.
  let derived = Counter()
  /// AVIFs encoded in the background.
  let avifs = Counter()
  /// Background AVIFs that failed.
  let avifsFailed = Counter()

  /// Adds the counts to `figures`.
  func add(to figures: inout FlightFigures) {
    figures.sourcesInstead = sourcesInstead.value
    figures.derived = derived.value
    figures.avifsLater = avifs.value
    figures.avifsFailed = avifsFailed.value
  }
}
