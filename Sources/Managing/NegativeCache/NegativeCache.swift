// NegativeCache: remembers the failures of sources and variants, and forgets them with a purge.

import Core

/// The negative cache, shared by all flights.
final class NegativeCache: Sendable {
  /// The work that failed.
  enum Stage {
    /// Loading a source.
    case loading
    /// Rendering a variant.
    case rendering
  }

  private let entries: Lock<FailedURLs>
  private let purges: any PurgeList
  private let now: @Sendable () -> UnixTime

  /// Creates an empty negative cache.
  ///
  /// - Parameter settings: how long failures are remembered.
  init(
    settings: FailureSettings, purges: any PurgeList, now: @escaping @Sendable () -> UnixTime
  ) {
    entries = Lock(FailedURLs(settings: settings))
    self.purges = purges
    self.now = now
  }

  /// See `FailedURLs.apply`.
  func apply(_ settings: FailureSettings) { entries.withLock { $0.apply(settings) } }

  /// The number of entries, including expired ones that are not removed yet.
  var count: Int { entries.withLock { $0.count } }

  /// Returns the remembered failure of a request's source or variant at `stage`, unless the request
  /// retries failures.
  func failure(of request: ImageRequest, at stage: Stage) -> ImageError? {
    guard !request.options.retriesFailed else { return nil }
    return entries.withLock { entries in
      // A load failure of the source must not hide a render failure of the variant, or the reverse.
      [request.key.source, request.key].compactMap { entries.failure(of: $0, now: now()) }
        .first { $0.cause.stage == stage }
    }
  }

  /// Adds a failure unless a purge covers it. Returns the error for the client.
  ///
  /// - Parameters:
  ///   - generation: the purge generation of the failed work.
  ///   - freshness: the freshness of the failed response, which limits the lifetime (RFC 9111);
  ///     `nil` if no response arrived.
  func add(
    _ error: ImageError, of key: CacheKey, since generation: Int, freshness: Freshness?
  ) -> ImageError {
    // Checks and adds in one critical section: a purge clears failures after it is published.
    entries.withLock { entries in
      purges.covers(key, generation: generation)
        ? error : entries.add(key, after: error, originFreshness: freshness, now: now())
    }
  }

  // MARK: Rendering

  /// Adds a render failure and returns the error for the client.
  ///
  /// Only failures of the source itself (`ImageError.isOfSource`, as the imaging worker reports)
  /// are listed for the source. Failures of one variant are listed for that variant, and all others
  /// are not listed.
  func add(
    _ error: ImageError, rendering request: ImageRequest, of source: Source
  ) -> ImageError {
    // `BackgroundQueue` remembers this failure, and no client waited for it.
    guard !request.options.awaitsAVIF else { return error }
    switch error {
    case .ofVariant:
      return add(
        error, of: request.key, since: source.generation, freshness: source.freshness)
    case _ where error.isOfSource:
      return add(
        error, of: request.key.source, since: source.generation, freshness: source.freshness)
    default: return error
    }
  }

  /// Removes the failures of a request's source, variant and watermark.
  func removeFailures(of request: ImageRequest) {
    entries.withLock { entries in
      _ = entries.remove(request.key.source)
      _ = entries.remove(request.key)
      if let watermark = request.transform.watermark { _ = entries.remove(watermark.key) }
    }
  }

  /// Removes matching entries and returns their number.
  func removeAll(where matches: (CacheKey) -> Bool) -> Int {
    entries.withLock { $0.removeAll(where: matches) }
  }

  /// Removes the entries of one URL, or all entries. Returns their number.
  func removeAll(of url: SourceURL?) -> Int {
    entries.withLock { entries in
      guard let url else { return entries.removeAll() }
      return entries.removeAll { $0.url == url.text }
    }
  }

  /// Returns the unexpired entries, oldest first.
  func all() -> [FailedURL] { entries.withLock { $0.all(now: now()) } }
}

extension ImageError {
  /// The work that reports this failure.
  fileprivate var stage: NegativeCache.Stage {
    switch self {
    case .sourceNotFound, .sourceTooLarge: .loading
    default: .rendering
    }
  }
}
