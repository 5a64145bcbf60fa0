// Staleness: decides which cached responses may be served stale (RFC 5861).

import Model

/// How a cached entry may satisfy a request.
enum KeptUse: Equatable {
  /// The entry is fresh enough, without asking the origin.
  case fresh
  /// The entry is stale, and the reason allows serving it.
  case stale(CacheStatus.StaleReason)

  /// Why the entry may be served stale, or `nil` if it is fresh.
  var staleReason: CacheStatus.StaleReason? {
    if case .stale(let reason) = self { reason } else { nil }
  }
}

extension ImageManager {
  /// Returns how a cached entry may satisfy a request, or `nil` if the origin must be asked first.
  func use(of freshness: Freshness, by request: ImageRequest) -> KeptUse? {
    let options = request.options
    guard options.cache.looks else { return nil }
    let now = now()
    if freshness.satisfies(options.age, at: now) {
      return freshness.isFresh(at: now) ? .fresh : .stale(.accepted)
    }
    // Requests with age demands get no staler entry than they allow. Requests that store nothing
    // start no revalidation.
    guard options.age == AgeDemands(), !options.isRevalidation, !options.store.isEmpty else {
      return nil
    }
    if freshness.mayBeServedWhileRevalidating(at: now) { return .stale(.whileRevalidating) }
    guard freshness.mayBeServedOnError(at: now),
      failing.withLock({ $0.isFailing(request.key.source, now: now) })
    else { return nil }
    return .stale(.ifError)
  }

  /// Returns the cache status of a cached response, and revalidates a stale one in the background.
  ///
  /// A caller that stores the entry must do so first, or the entry would overwrite the renewed one.
  func status(
    of use: KeptUse, _ freshness: Freshness, from tier: CacheStatus.Tier, to request: ImageRequest
  ) -> CacheStatus {
    guard case .stale(let reason) = use else { return .hit(tier) }
    if reason != .accepted { revalidate(request) }
    return .staleHit(tier, reason, ttl: min(freshness.timeToLive(at: now()), 0))
  }

  // MARK: Errors

  /// Returns the cached source instead of a load failure, if stale-if-error allows it. Otherwise
  /// throws the failure.
  ///
  /// - Parameters:
  ///   - generation: the purge generation before the first look-up.
  ///   - said: the freshness of the failed response, or `nil` if no head arrived.
  /// - Throws: the failure, as the client sees it.
  func standIn(
    for error: ImageError, _ kept: Source?, _ request: ImageRequest, since generation: Int,
    said: Freshness?, _ timings: Timings
  ) async throws(ImageError) -> LoadedSource {
    let key = request.key.source
    let told = remember(error, of: key, since: generation, said: said)
    guard let kept, isRight(kept) else { throw told }
    if case .sourceNotFound = error.cause {
      await takeDown(key) { isRight(kept) }
    } else if note(error, of: request), mayStandIn(kept.freshness, request) {
      return LoadedSource(
        source: kept, forward: .stale, originStatus: error.originStatus, stale: .ifError,
        isStored: true, timings: timings)
    }
    throw told
  }

  /// Returns the cached variant instead of a load failure, if stale-if-error allows it.
  ///
  /// - Throws: the failure.
  func standIn(
    for error: ImageError, _ kept: Variant?, _ request: ImageRequest, _ timings: Timings
  ) async throws(ImageError) -> MadeVariant {
    guard let kept, isRight(kept) else { throw error }
    if case .sourceNotFound = error.cause {
      await takeDown(request.key.source) { isRight(kept) }
    } else if note(error, of: request), mayStandIn(kept.info.freshness, request) {
      return MadeVariant(
        variant: kept, status: .staleIfError(collapsed: false, originStatus: error.originStatus),
        timings: timings)
    }
    throw error
  }

  /// Records a failed revalidation and returns whether it allows a stale response.
  private func note(_ error: ImageError, of request: ImageRequest) -> Bool {
    switch error.cause {
    case .sourceUnreachable, .sourceTimeout, .sourceTLS, .sourceIncomplete, .sourceError,
      .tooManyRedirects, .forbiddenSource, .sourceTooLarge, .unsupportedFormat, .overloaded:
      failing.withLock { $0.add(request.key.source, error, now: now()) }
      return error.letsStaleBeServed
    // Other failures say nothing about the origin.
    default: return false
    }
  }

  /// Returns whether stale-if-error applies. Requests that force revalidation get the error, not a
  /// stale response.
  private func mayStandIn(_ freshness: Freshness, _ request: ImageRequest) -> Bool {
    request.options.cache == .normal && !request.options.isRevalidation
      && freshness.mayBeServedOnError(at: now())
  }

  /// Returns whether a source is neither purged nor replaced.
  private func isRight(_ source: Source) -> Bool { changed.allows(source) && !isPurged(source) }

  /// Invalidates a source that the origin reports as gone, and its variants, in the order of
  /// `replace`.
  ///
  /// - Parameter isRight: whether the cached entry is still current; another flight or an upload
  ///   may have replaced it.
  private func takeDown(_ key: CacheKey, where isRight: () -> Bool) async {
    let isDown = gate.hold(for: key) {
      guard isRight() else { return false }
      // A random version matches no existing variant.
      changed.change(key, to: .random(in: 1...(.max)))
      return true
    }
    guard isDown else { return }
    await disk.remove(key)
    await disk.removeVariants(of: key)
    memory.removeVariants(of: key)
    failing.withLock { $0.remove(key) }
  }
}

extension ImageError {
  /// Whether a stale response may replace this error.
  ///
  /// - The origin cannot be reached, or responds with 5xx (RFC 5861, section 4) or 429 (as in
  ///   nginx's `proxy_cache_use_stale`).
  /// - Pictor is overloaded and cannot ask the origin.
  ///
  /// All other responses are the origin's answer and reach the client (RFC 9111, section 4.3.3).
  var letsStaleBeServed: Bool {
    switch cause {
    case .sourceUnreachable, .sourceTimeout, .sourceTLS, .sourceIncomplete, .overloaded: true
    case .sourceError(let status, _): status == 429 || (500...599).contains(status)
    default: false
    }
  }

  /// The status of the origin's response, if there was one.
  fileprivate var originStatus: Int? {
    switch cause {
    case .sourceError(let status, _), .sourceNotFound(let status): status
    default: nil
    }
  }
}
