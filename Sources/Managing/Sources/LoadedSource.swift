// LoadedSource: the result of a source flight, and a lease of one.

import Core

/// The result of a source flight.
struct LoadedSource: Sendable {
  let source: Source
  /// Why the loader was called, or `nil` if it was not.
  let forward: CacheStatus.Forward?
  /// The origin's status, or `nil` if no origin responded.
  let originStatus: Int?
  /// Why a stale source was used, or `nil` if the source is fresh.
  var stale: CacheStatus.StaleReason?
  /// Whether the disk tier has the source.
  let isStored: Bool
  let timings: Timings

  /// Returns the cache status of a response that needed this source. The status describes the
  /// origin request if there was one, otherwise the tier that had the data.
  ///
  /// - Parameters:
  ///   - tier: the tier that had the data.
  ///   - replacesEntry: whether a stale variant was cached.
  ///   - isStored: whether a tier stored the response.
  ///   - isCollapsed: whether another request had started the source's flight.
  func status(
    from tier: CacheStatus.Tier, replacesEntry: Bool, isStored: Bool, isCollapsed: Bool,
    at now: UnixTime
  ) -> CacheStatus {
    guard let forward else {
      let use = stale.map { EntryUse.stale($0) } ?? .fresh
      return use.status(of: source.freshness, from: tier, at: now)
    }
    guard stale == nil else {
      return .staleIfError(collapsed: isCollapsed, originStatus: originStatus)
    }
    // An absent source of a cached variant counts as stale.
    return .miss(
      replacesEntry && forward == .uriMiss ? .stale : forward, stored: isStored,
      collapsed: isCollapsed, originStatus: originStatus)
  }
}

/// A source that a request has, or is loading before the manager knows how the request uses it.
enum HeldSource: Sendable {
  case loaded(LoadedSource)
  case loading(FlightParticipant, Task<Result<LoadedSource, ImageError>, Never>)

  /// Returns the source, and whether another request had started its load.
  ///
  /// - Parameter participant: the participant of a flight, which gives the load its priority. A load
  ///   that closes closes the flight.
  func value(
    for participant: FlightParticipant
  ) async throws(ImageError) -> (LoadedSource, joined: Bool) {
    switch self {
    case .loaded(let loaded): return (loaded, false)
    case .loading(let holder, let task):
      holder.enter(0, participant: participant, hasJoined: false)
      return (try await task.value.get(), holder.hasJoined)
    }
  }
}
