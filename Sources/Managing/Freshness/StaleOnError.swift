// StaleOnError: decides whether a cached entry replaces a failed load (RFC 5861, section 4).

import Model

/// Applies stale-if-error to sources and to variants.
struct StaleOnError: Sendable {
  private let sources: SourceStore
  private let staleness: Staleness

  init(sources: SourceStore, staleness: Staleness) {
    self.sources = sources
    self.staleness = staleness
  }

  /// Returns whether a cached entry is served instead of a failed load.
  ///
  /// A source that the origin reports as gone is invalidated with its variants.
  /// - Parameters:
  ///   - freshness: the freshness of the cached entry.
  ///   - version: the version of its source.
  ///   - isCurrent: whether the cached entry is still current; another flight or an upload may have
  ///     replaced it.
  func allows(
    _ freshness: Freshness, version: UInt64, insteadOf error: ImageError,
    to request: ImageRequest, isCurrent: () -> Bool
  ) async -> Bool {
    guard isCurrent() else { return false }
    if case .sourceNotFound = error.cause {
      if await sources.invalidate(request.key.source, version: version, where: isCurrent) {
        staleness.endBackoff(of: request.key.source)
      }
      return false
    }
    return staleness.allowsStale(freshness, insteadOf: error, to: request)
  }
}
