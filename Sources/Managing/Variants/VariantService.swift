// VariantService: returns variants, each rendered once for all requests that need it.

import Model
import Telemetry

/// Returns variants from the tiers, or rendered from their sources. Flights coalesce requests by
/// variant key.
final class VariantService: Sendable {
  private let flights = Flights<FlightKey, FlightDeliveries>()
  private let steps: [any MissStep]
  private let lookup: VariantLookup
  private let deferredAVIF: DeferredAVIF
  private let revalidator: Revalidator

  /// - Parameter steps: the steps of a miss, in order. The first with a response ends the miss.
  init(
    steps: [any MissStep], lookup: VariantLookup, deferredAVIF: DeferredAVIF,
    revalidator: Revalidator
  ) {
    self.steps = steps
    self.lookup = lookup
    self.deferredAVIF = deferredAVIF
    self.revalidator = revalidator
  }

  // MARK: Responses

  /// Returns a response available without blocking. It is a stale memory entry the request accepts,
  /// a small disk entry in the page cache, or the fallback for a pending AVIF.
  ///
  /// A disk entry is promoted to memory if the request's storage options allow it.
  func deliveryAtOnce(for request: ImageRequest) -> ImageDelivery? {
    guard request.options.cache.readsCache else { return nil }
    if let found = lookup.inMemory(request),
      let response = lookup.response(with: found, timings: Timings())
    {
      return deliver(response, to: request)
    }
    let start = ContinuousClock.now
    if let found = lookup.onDiskAtOnce(request) {
      var timings = Timings()
      timings.disk = .now - start
      if let response = lookup.response(with: found, timings: timings) {
        lookup.promote(found.variant, for: request)
        return deliver(response, to: request)
      }
    }
    guard let fallback = deferredAVIF.pendingFallback(for: request),
      let found = lookup.inMemory(fallback),
      let response = lookup.response(with: found, timings: Timings())
    else { return nil }
    let delivery = deliver(response, to: fallback)
    return ImageDelivery(
      variant: deferredAVIF.placeholder(delivery.variant, for: request),
      cacheStatus: delivery.cacheStatus, timings: delivery.timings)
  }

  /// Returns a fresh small variant on disk if it is available without blocking, and stores it in memory.
  ///
  /// - Parameter request: returns the request for the key, without options.
  func freshOnDisk(
    _ key: CacheKey, at now: UnixTime, of request: () -> ImageRequest?
  ) -> Variant? {
    // One that waits to be written may be in a file. Its request looks again, and is counted then.
    guard let variant = lookup.freshOnDisk(key, at: now), case .memory = variant.body else {
      return nil
    }
    lookup.promote(variant, of: request)
    revalidator.count(.hit(.disk))
    return variant
  }

  /// Returns the response to a request that may already hold its source. Concurrent requests for
  /// one variant share a flight.
  func variant(
    for request: ImageRequest, held: HeldSource? = nil
  ) async throws(ImageError) -> ImageDelivery {
    let (deliveries, joined) = try await flights.value(
      for: FlightKey(request), participant: FlightParticipant(request.options.priority),
      isDetached: request.options.isDetached
    ) { participant async throws(ImageError) in
      FlightDeliveries(
        try await self.perform(Miss(request, participant: participant, held: held)))
    }
    let delivery = deliveries.delivery(hasJoined: joined)
    lookup.countRequest(request.options.demand(isRepeated: joined), for: delivery.variant)
    revalidator.count(delivery.cacheStatus)
    return delivery
  }

  /// Joins the flight of a request's variant without a task. See `ImageProvider`.
  func follow(
    _ request: ImageRequest, for client: LoadClient,
    completion: @escaping @Sendable (Result<ImageDelivery, ImageError>) -> Void
  ) -> (@Sendable () -> Void)? {
    let options = request.options
    let demand = options.demand(isRepeated: true)
    return flights.follow(
      FlightKey(request), priority: options.priority, client: client,
      isDetached: options.isDetached
    ) { [lookup, revalidator] result in
      switch result {
      case .success(let deliveries):
        lookup.countRequest(demand, for: deliveries.joined.variant)
        revalidator.count(deliveries.joined.cacheStatus)
        completion(.success(deliveries.joined))
      case .failure(let error): completion(.failure(error))
      }
    }
  }

  // MARK: Explaining

  /// The number of requests in the flight that a request would join; 0 without one.
  func participants(of request: ImageRequest) -> Int { flights.waiters(of: FlightKey(request)) }

  /// Returns the cache status with which the fallback of a pending AVIF would be served at once, or
  /// `nil`.
  func plannedFallback(for request: ImageRequest) -> String? {
    guard request.options.cache.readsCache,
      let fallback = deferredAVIF.pendingFallback(for: request),
      let found = lookup.inMemory(fallback), let use = found.use
    else { return nil }
    return lookup.status(of: use, with: found.variant.info.freshness, from: .memory).headerValue
  }

  // MARK: Flights

  /// Closes the flights of matching keys to new participants.
  func retireFlights(where matches: (CacheKey) -> Bool) {
    flights.retire { matches($0.key) }
  }

  /// Cancels all flights. Returns the number of waiting requests.
  func cancelAll() -> Int { flights.cancelAll(.revoked) }

  /// The number of detached flights that run without waiters.
  var unattendedCount: Int { flights.unattendedCount }

  /// Adds the current flights and counts to `figures`.
  func add(to figures: inout Figures) {
    flights.add(to: &figures, kind: "variant")
    figures.add(
      "avifs_waiting", deferredAVIF.waiting, "pictor_deferred_avifs_waiting",
      "AVIFs queued or encoded in the background now.")
  }

  // MARK: Misses

  /// Runs the steps until one has the response.
  private func perform(_ miss: Miss) async throws(ImageError) -> VariantResult {
    var miss = miss
    for step in steps {
      switch try await step.run(&miss) {
      case .next: continue
      case .response(let result):
        revalidate(miss.request, after: result.status)
        return result
      case .fallback(let fallback, let held):
        return try await perform(fallback, insteadOf: miss, held: held)
      }
    }
    throw .internal(detail: "no step answered a miss")
  }

  /// Serves the fallback format and schedules the AVIF.
  private func perform(
    _ fallback: ImageRequest, insteadOf miss: Miss, held: HeldSource?
  ) async throws(ImageError) -> VariantResult {
    let (deliveries, joined) = try await flights.value(
      for: FlightKey(fallback), participant: miss.participant
    ) { participant async throws(ImageError) in
      FlightDeliveries(
        try await self.perform(Miss(fallback, participant: participant, held: held)))
    }
    let delivery = deliveries.delivery(hasJoined: joined)
    lookup.countRequest(fallback.options.demand(isRepeated: joined), for: delivery.variant)
    return await deferredAVIF.response(to: miss.request, with: delivery) {
      request async throws(ImageError) in _ = try await self.variant(for: request)
    }
  }

  private func deliver(_ response: VariantResult, to request: ImageRequest) -> ImageDelivery {
    revalidate(request, after: response.status)
    revalidator.count(response.status)
    return response.delivery
  }

  /// Revalidates a stale response in the background, unless the client accepts stale responses.
  ///
  /// A response that is stored is stored before, or it would overwrite the renewed one.
  private func revalidate(_ request: ImageRequest, after status: CacheStatus) {
    switch status {
    case .staleHit(_, .whileRevalidating, _), .staleHit(_, .ifError, _):
      revalidator.start(request) { request async throws(ImageError) in
        _ = try await self.variant(for: request)
      }
    case .staleHit(_, .accepted, _), .hit, .miss, .staleIfError: break
    }
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
