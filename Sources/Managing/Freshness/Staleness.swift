// Staleness: which kept answers may be given though they are stale, and what follows from it (RFC 5861).

import Model

/// How something kept may be the answer.
enum KeptUse: Equatable {
  /// Nobody needs to be asked.
  case fresh
  /// It is stale and will do.
  case stale(CacheStatus.StaleReason)

  /// Why it will do though it is stale.
  var staleReason: CacheStatus.StaleReason? {
    if case .stale(let reason) = self { reason } else { nil }
  }
}

extension ImageManager {
  /// How something kept may be the answer to a request; `nil`: not at all, as far as is known without asking the origin.
  func use(of freshness: Freshness, by request: ImageRequest) -> KeptUse? {
    let options = request.options
    guard options.cache.looks else { return nil }
    let now = now()
    if freshness.satisfies(options.age, at: now) {
      return freshness.isFresh(at: now) ? .fresh : .stale(.accepted)
    }
    // Who says how old it may be means it, and what is to be kept nowhere is renewed for nobody.
    guard options.age == AgeDemands(), !options.isRevalidation, !options.store.isEmpty else {
      return nil
    }
    if freshness.mayBeServedWhileRevalidating(at: now) { return .stale(.whileRevalidating) }
    guard freshness.mayBeServedOnError(at: now),
      failing.withLock({ $0.isFailing(request.key.source, now: now) })
    else { return nil }
    return .stale(.ifError)
  }

  /// The status of an answer from what is kept. Where it is stale, asking its origin begins behind the answer's back, so
  /// whatever is stored has to be before: it would take the place of what is newer.
  func status(
    of use: KeptUse, _ freshness: Freshness, from tier: CacheStatus.Tier, to request: ImageRequest
  ) -> CacheStatus {
    guard case .stale(let reason) = use else { return .hit(tier) }
    if reason != .accepted { revalidate(request) }
    return .staleHit(tier, reason, ttl: min(freshness.timeToLive(at: now()), 0))
  }

  // MARK: Errors

  /// The kept source in place of one that could not be had, where that may be.
  ///
  /// - Parameters:
  ///   - generation: the last purge before anything was looked at.
  ///   - said: what the failed answer's head says of how long it holds; `nil` where there was none.
  /// - Throws: the failure, as it is to be told.
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

  /// The kept variant in place of one whose source could not be had, where that may be.
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

  /// Notes that something kept could not be renewed; tells whether that is a reason to serve it stale.
  private func note(_ error: ImageError, of request: ImageRequest) -> Bool {
    switch error.cause {
    case .sourceUnreachable, .sourceTimeout, .sourceTLS, .sourceIncomplete, .sourceError,
      .tooManyRedirects, .forbiddenSource, .sourceTooLarge, .unsupportedFormat, .overloaded:
      failing.withLock { $0.add(request.key.source, error, now: now()) }
      return error.letsStaleBeServed
    // All others say nothing about the origin.
    default: return false
    }
  }

  /// Who wants its origin asked is told what came of it.
  private func mayStandIn(_ freshness: Freshness, _ request: ImageRequest) -> Bool {
    request.options.cache == .normal && !request.options.isRevalidation
      && freshness.mayBeServedOnError(at: now())
  }

  /// Whether a source was neither purged nor replaced since.
  private func isRight(_ source: Source) -> Bool { changed.allows(source) && !isPurged(source) }

  /// Lets go of a source that its origin says is gone, and of what was made of it, in the order of `replace`.
  ///
  /// - Parameter isRight: whether that is still what there is: another may have been loaded, or put, meanwhile.
  private func takeDown(_ key: CacheKey, where isRight: () -> Bool) async {
    let isDown = gate.hold(for: key) {
      guard isRight() else { return false }
      // No variant there is has this one.
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
  /// Whether what is kept may be served in its place: the origin cannot be had, or says that the fault is its own or that
  /// it is asked too much (RFC 5861, section 4, and 429, as nginx's `proxy_cache_use_stale` has it); or there is no room
  /// here for asking it. Other answers are what the origin has to say, and are told (RFC 9111, section 4.3.3).
  var letsStaleBeServed: Bool {
    switch cause {
    case .sourceUnreachable, .sourceTimeout, .sourceTLS, .sourceIncomplete, .overloaded: true
    case .sourceError(let status, _): status == 429 || (500...599).contains(status)
    default: false
    }
  }

  /// The status that the origin answered with, where it did.
  fileprivate var originStatus: Int? {
    switch cause {
    case .sourceError(let status, _), .sourceNotFound(let status): status
    default: nil
    }
  }
}
