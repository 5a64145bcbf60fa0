// SubstitutionCounters: counts variants that replace the one a request would normally get.

import Core

/// Counters for substituted variants.
final class SubstitutionCounters: Sendable {
  /// Sources served because the encoded image was larger.
  let sourcesInstead = Counter(
    "sources_instead", "pictor_sources_served_instead_total",
    "Results replaced by smaller sources.")
  let derived = Counter(
    "derived", "pictor_variants_derived_total", "Variants derived from larger ones.")
  let avifs = Counter(
    "avifs_later", "pictor_deferred_avifs_encoded_total", "AVIFs encoded in the background.")
  let avifsFailed = Counter(
    "avifs_failed", "pictor_deferred_avifs_failed_total", "AVIFs that failed in the background.")
}
