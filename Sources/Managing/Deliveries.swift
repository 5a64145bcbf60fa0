// Deliveries: answers requests for variants, each rendered once for all requests that need it.

import Core

struct VariantResult: Sendable {
  let variant: Variant
  let status: CacheStatus
  let timings: Timings
  /// What the timings are of. Several results may have them.
  var work = SharedWork()

  /// The result as it is answered to the request that it was made for.
  var delivery: ImageDelivery {
    ImageDelivery(variant: variant, cacheStatus: status, timings: timings)
  }
}

/// How a miss ends.
enum MissAnswer: Sendable {
  case result(VariantResult)
  /// A faster format. The AVIF is encoded later.
  case later(VariantResult)
  /// The status of the answer. Only an explanation ends without a variant.
  case foreseen(CacheStatus)

  var status: CacheStatus {
    switch self {
    case .result(let result), .later(let result): result.status
    case .foreseen(let status): status
    }
  }
}

/// A current variant in a tier.
struct CachedVariant {
  let variant: Variant
  let tier: CacheStatus.Tier
  /// How the variant may satisfy the request, or `nil` if the origin must be asked first.
  let use: EntryUse?
}

/// What the requests of a variant flight are answered with.
struct FlightDeliveries: Sendable {
  /// For the request that started the flight.
  let first: ImageDelivery
  /// For all that joined it.
  let joined: ImageDelivery

  init(_ result: VariantResult) {
    let work = result.work
    first = ImageDelivery(
      variant: result.variant, cacheStatus: result.status, timings: result.timings, of: work)
    joined = ImageDelivery(
      variant: result.variant, cacheStatus: result.status.collapsed, timings: result.timings,
      of: work, isShared: true)
  }

  /// Returns what a request is answered with that `hasJoined` the flight, or has started it.
  func delivery(hasJoined: Bool) -> ImageDelivery { hasJoined ? joined : first }
}

extension ImageManager: ImageProvider {
  /// See `ImageProvider`.
  public func cachedVariant(for key: CacheKey) -> Variant? {
    parts.cache.hit(key, freshAt: parts.now()) { recompressor.add($0) }
  }

  /// See `ImageProvider`.
  public func isCached(_ key: CacheKey) -> Bool { parts.cache.isFresh(key, at: parts.now()) }

  /// Returns a response available without blocking. It is a stale memory entry the request accepts,
  /// a small disk entry in the page cache, or the fallback for a pending AVIF.
  ///
  /// A disk entry is promoted to memory if the request's storage options allow it.
  public func deliveryAtOnce(for request: ImageRequest) -> ImageDelivery? {
    guard request.options.cache.readsCache else { return nil }
    if let found = cached(parts.cache.inMemory(request.key), in: .memory, for: request),
      let response = result(with: found, Timings())
    {
      return deliver(response, to: request)
    }
    let start = ContinuousClock.now
    let onDisk = parts.cache.onDiskAtOnce(
      request.key, where: { parts.staleness.use(of: $0.freshness, by: request) != nil })
    if let found = cached(onDisk, in: .disk, for: request) {
      var timings = Timings()
      timings.disk = .now - start
      if let response = result(with: found, timings) {
        promote(found.variant, for: request)
        return deliver(response, to: request)
      }
    }
    guard let (fallback, found) = pendingFallback(for: request),
      let response = result(with: found, Timings())
    else { return nil }
    let delivery = deliver(response, to: fallback)
    return ImageDelivery(
      variant: deferredAVIF.placeholder(delivery.variant, for: request),
      cacheStatus: delivery.cacheStatus, timings: delivery.timings)
  }

  /// Returns the fallback of a pending AVIF that memory has, with its request.
  func pendingFallback(for request: ImageRequest) -> (ImageRequest, CachedVariant)? {
    guard request.options.cache.readsCache,
      let fallback = deferredAVIF.pendingFallback(for: request),
      let found = cached(parts.cache.inMemory(fallback.key), in: .memory, for: fallback)
    else { return nil }
    return (fallback, found)
  }

  /// See `ImageProvider`. Stores the variant in memory.
  public func variantOnDisk(for key: CacheKey, of request: () -> ImageRequest?) -> Variant? {
    let now = parts.now()
    // One that waits to be written may be in a file. Its request looks again, and is counted then.
    guard
      let variant = parts.cache.onDiskAtOnce(key, where: { $0.freshness.isFresh(at: now) }),
      case .memory = variant.body
    else { return nil }
    if parts.requests.mayNote(variant), let request = request() {
      parts.requests.note(request, of: variant)
    }
    parts.cache.store(variant, in: .memory)
    parts.revalidator.counters.add(.hit(.disk))
    return variant
  }

  /// Returns the response to a request that neither `cachedVariant` nor `deliveryAtOnce` could
  /// answer. Concurrent requests for one variant share a flight.
  public func variant(for request: ImageRequest) async throws(ImageError) -> ImageDelivery {
    try await variant(for: request, holding: nil)
  }

  /// Returns the response to a request that may already hold its source.
  func variant(
    for request: ImageRequest, holding held: HeldSource?
  ) async throws(ImageError) -> ImageDelivery {
    let delivery = try await delivery(
      of: request, holding: held, for: FlightParticipant(request.options.priority),
      isDetached: request.options.isDetached)
    parts.revalidator.counters.add(delivery.cacheStatus)
    return delivery
  }

  /// Returns the response to a request from the flight of its variant.
  func delivery(
    of request: ImageRequest, holding held: HeldSource?, for participant: FlightParticipant,
    isDetached: Bool = false
  ) async throws(ImageError) -> ImageDelivery {
    let (deliveries, joined) = try await flights.value(
      for: FlightKey(request), participant: participant, isDetached: isDetached
    ) { participant async throws(ImageError) in
      switch try await self.answer(to: request, holding: held, with: .allowed(participant)) {
      case .result(let result):
        self.revalidate(request, after: result.status)
        return FlightDeliveries(result)
      case .later(let result): return FlightDeliveries(result)
      case .foreseen: throw .internal(detail: "a miss without a variant")
      }
    }
    let delivery = deliveries.delivery(hasJoined: joined)
    countRequest(request.options.demand(isRepeated: joined), for: delivery.variant)
    return delivery
  }

  /// See `ImageProvider`.
  public func follow(
    _ request: ImageRequest, for client: LoadClient,
    completion: @escaping @Sendable (Result<ImageDelivery, ImageError>) -> Void
  ) -> (@Sendable () -> Void)? {
    let options = request.options
    let demand = options.demand(isRepeated: true)
    return flights.follow(
      FlightKey(request), priority: options.priority, client: client,
      isDetached: options.isDetached
    ) { [self] result in
      switch result {
      case .success(let deliveries):
        countRequest(demand, for: deliveries.joined.variant)
        parts.revalidator.counters.add(deliveries.joined.cacheStatus)
        completion(.success(deliveries.joined))
      case .failure(let error): completion(.failure(error))
      }
    }
  }

  /// Counts a participant's request for the variant of its flight. The request that started the
  /// flight has been counted when the variant was stored; another one is a second request.
  private func countRequest(_ demand: VariantDemand, for variant: Variant) {
    if demand != .first { parts.cache.admit(variant, for: demand) }
  }

  private func deliver(_ response: VariantResult, to request: ImageRequest) -> ImageDelivery {
    revalidate(request, after: response.status)
    parts.revalidator.counters.add(response.status)
    return response.delivery
  }

  /// Revalidates a stale response in the background, unless the client accepts stale responses.
  ///
  /// A response that is stored is stored before, or it would overwrite the renewed one.
  private func revalidate(_ request: ImageRequest, after status: CacheStatus) {
    switch status {
    case .staleHit(_, .whileRevalidating, _), .staleHit(_, .ifError, _):
      parts.revalidator.start(request) { request async throws(ImageError) in
        _ = try await self.variant(for: request)
      }
    case .staleHit(_, .accepted, _), .hit, .miss, .staleIfError: break
    }
  }
}

extension LoadOptions {
  /// Returns the demand of a request with these options.
  ///
  /// - Parameter isRepeated: whether its key was asked for before.
  func demand(isRepeated: Bool = false) -> VariantDemand {
    isFreeForm ? isRepeated ? .repeated : .first : .vouched
  }
}

extension CacheStatus {
  /// The status of a request that joined a flight. Only a forwarded request can be collapsed (RFC
  /// 9211, section 2.6).
  var collapsed: CacheStatus {
    switch self {
    case .hit, .staleHit: self
    case .miss(let forward, let stored, _, let originStatus):
      .miss(forward, stored: stored, collapsed: true, originStatus: originStatus)
    case .staleIfError(_, let originStatus):
      .staleIfError(collapsed: true, originStatus: originStatus)
    }
  }
}
