// FlightKey: which requests can share one flight.

import Model

/// What a flight of variants is for. Those who look at other things, or keep other things, are no company: a request
/// that wants the origin asked is not answered by a flight that may have found something kept.
struct FlightKey: Hashable, Sendable {
  /// What is wanted.
  let key: CacheKey
  /// How, other than the priority, which is raised by whoever joins, and the detachment, which is the flight's as soon
  /// as it is one waiter's.
  private let options: LoadOptions

  init(_ request: ImageRequest) {
    key = request.key
    var options = request.options
    options.priority = .normal
    options.isDetached = false
    options.trail = options.trail.bare
    self.options = options
  }
}

/// What a flight of sources is for. However different the requests, a source is loaded by one flight at a time for each
/// way of asking for it; what else they want of it, they see to when it is there.
struct SourceFlightKey: Hashable, Sendable {
  /// The source.
  let key: CacheKey
  /// Which kept source will do.
  let use: CacheUse
  /// Whether what is kept has to be of some age, which each waiter looks at for itself.
  let demandsAge: Bool
  /// Whether it is tried though it failed before.
  let retriesFailed: Bool
  /// Whether nothing stale will do, since somebody has it already.
  let isRevalidation: Bool
  /// The servers that the request came through. In a loop of servers each would otherwise join the flight that waits for
  /// it, and none would hear its own name.
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
  /// Whether what is kept may be the answer.
  var looks: Bool { self == .normal || self == .only }
}
