// FreshnessCounts: what the manager counts of staleness.

import Model
import Telemetry

/// Counts of what was served stale.
final class FreshnessCounts: Sendable {
  /// Revalidations begun.
  let revalidations = Counter()
  /// Revalidations that failed.
  let revalidationsFailed = Counter()
  /// Sources found to have come in later than now.
  let clockSetBack = Counter()
  private let whileRevalidating = Counter()
  private let ifError = Counter()
  private let accepted = Counter()

  /// Counts an answer, if it is stale.
  func add(_ status: CacheStatus) {
    switch status {
    case .staleHit(_, .whileRevalidating, _): whileRevalidating.add()
    case .staleHit(_, .ifError, _), .staleIfError: ifError.add()
    case .staleHit(_, .accepted, _): accepted.add()
    case .hit, .miss: break
    }
  }

  /// The state now, but for the sources that fail.
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
