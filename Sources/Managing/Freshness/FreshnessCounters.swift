// FreshnessCounters: counts stale responses and revalidations.

import Core

/// Counters for stale responses.
final class FreshnessCounters: Sendable {
  let revalidations = Counter(
    "revalidations", "pictor_revalidations_started_total", "Background revalidations started.")
  let revalidationsFailed = Counter(
    "revalidations_failed", "pictor_revalidations_failed_total",
    "Background revalidations that failed.")
  /// Cached sources with a receive time in the future, because the clock was set back.
  let clockSetBack = Counter(
    "clock_set_back", "pictor_sources_from_future_total",
    "Sources found with a time ahead of the clock.")
  /// RFC 5861's stale-while-revalidate.
  private let whileRevalidating = Counter(
    "stale_while_revalidate", "pictor_stale_responses_total", "Stale responses, by reason.",
    ["reason": "while_revalidate"])
  /// RFC 5861's stale-if-error.
  private let ifError = Counter(
    "stale_if_error", "pictor_stale_responses_total", "Stale responses for failed origins.",
    ["reason": "if_error"])
  private let accepted = Counter(
    "max_stale", "pictor_stale_responses_total", "Stale responses that the request accepted.",
    ["reason": "max_stale"])

  /// Counts a response if it is stale.
  func add(_ status: CacheStatus) {
    switch status {
    case .staleHit(_, .whileRevalidating, _): whileRevalidating.add()
    case .staleHit(_, .ifError, _), .staleIfError: ifError.add()
    case .staleHit(_, .accepted, _): accepted.add()
    case .hit, .miss: break
    }
  }
}
