// FlightKey: defines which requests share a flight.

import Core

/// The key of a variant flight.
///
/// Requests with different cache policies are not coalesced: one that forces revalidation must not
/// join a flight that may be satisfied from cache.
struct FlightKey: Hashable, Sendable {
  let key: CacheKey
  /// The load options, without those that do not change the response:
  ///
  /// - A participant raises the flight's priority, and one detached participant makes the whole
  ///   flight detached.
  /// - Each participant counts by itself as a request for the variant
  ///   (`ImageManager.countRequest`).
  private let options: LoadOptions

  init(_ request: ImageRequest) {
    key = request.key
    var options = request.options
    options.priority = .normal
    options.isDetached = false
    options.isFreeForm = false
    options.onFailure = .error
    options.presentation = Presentation()
    options.trail = options.trail.bare
    options.trace = nil
    self.options = options
  }
}

/// The key of a source flight. Requests that use the cache in the same way share one download, even
/// if their transforms differ.
struct SourceFlightKey: Hashable, Sendable {
  let key: CacheKey
  /// How the flight uses cached sources.
  let use: CacheUse
  /// Whether the request limits the age of a cached source. Each participant checks its own limit.
  let demandsAge: Bool
  /// Whether the flight ignores the negative cache.
  let retriesFailed: Bool
  /// Whether the flight is a background revalidation, which a stale source cannot satisfy.
  let isRevalidation: Bool
  /// The servers that the request came through. In a loop of servers, each would otherwise join the
  /// flight that waits for it, and no server would see its own name.
  let trail: ServerTrail

  init(_ request: ImageRequest) {
    key = request.key.source
    use = request.options.cache
    demandsAge = request.options.age != AgeDemands()
    retriesFailed = request.options.retriesFailed
    isRevalidation = request.options.isRevalidation
    trail = request.options.trail.bare
  }
}

extension CacheUse {
  /// Whether a cached entry may satisfy the request.
  var readsCache: Bool { self == .normal || self == .only }
}
