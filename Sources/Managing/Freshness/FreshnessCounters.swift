// FreshnessCounters: counts stale responses and revalidations.

import Model
import Telemetry

/// Counters for stale responses.
final class FreshnessCounters: Sendable {
  /// Revalidations started.
  let revalidations = Counter()
  /// Revalidations that failed.
  let revalidationsFailed = Counter()
  /// Cached sources with a receive time in the future.
  let clockSetBack = Counter()
  private let whileRevalidating = Counter()
  private let ifError = Counter()
  private let accepted = Counter()

  /// Counts a response if it is stale.
  func add(_ status: CacheStatus) {
    switch status {
    case .staleHit(_, .whileRevalidating, _): whileRevalidating.add()
    case .staleHit(_, .ifError, _), .staleIfError: ifError.add()
    case .staleHit(_, .accepted, _): accepted.add()
    case .hit, .miss: break
    }
  }

  /// The counts now, without the number of failing sources.
  var figures: FreshnessFigures {
    var figures = FreshnessFigures()
    figures.staleWhileRevalidate = whileRevalidating.value
    figures.staleIfError = ifError.value
    figures.maxStale = accepted.value
    figures.revalidations = revalidations.value
    figures.revalidationsFailed = revalidationsFailed.value
    figures.clockSetBack = clockSetBack.value
    return figures
  }
}
