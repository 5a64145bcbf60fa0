// FlightParticipant: who waits for a coalesced flight, and the keys by which requests share one.

import Core

/// A streaming body that a flight receives.
struct FlightBody: Sendable {
  let body: any StreamingBody
  /// Why the cache forwarded the request.
  let forward: CacheStatus.Forward
}

/// A participant in a coalesced flight: a request, or a flight that waits for another flight.
///
/// A flight works for the clients of all its participants, those that have left included.
///
/// The priority of a flight is the maximum of its participants' priorities. It never falls, even
/// when that participant leaves (in SDWebImage 5, a joining request can lower it).
final class FlightParticipant: WorkPriority {
  private struct State {
    var priority: LoadPriority
    var observers: [@Sendable (LoadPriority) -> Void] = []
    var clients: Set<LoadClient>
    var clientObservers: [@Sendable (LoadClient) -> Void] = []
    var waiting: [Int: FlightParticipant] = [:]
    /// Requests that wait without a task.
    var followers: Set<Int> = []
    var body: FlightBody?
    var hasJoined = false
    var isClosed = false
  }

  private let state: Lock<State>
  private let isRequest: Bool
  private let onBody: (@Sendable (FlightBody) -> Void)?
  private let onClose: (@Sendable () -> Void)?

  /// Creates the participant of one request, which the current task works for (`ImagingAccounts`).
  ///
  /// - Parameter onBody: called on the loader's thread when a body begins to arrive; must not
  ///   block.
  init(
    _ priority: LoadPriority,
    clients: Set<LoadClient> = [ImagingAccounts.current?.client ?? .background],
    isRequest: Bool = true, onBody: (@Sendable (FlightBody) -> Void)? = nil,
    onClose: (@Sendable () -> Void)? = nil
  ) {
    state = Lock(State(priority: priority, clients: clients))
    self.isRequest = isRequest
    self.onBody = onBody
    self.onClose = onClose
  }

  /// Creates a flight's own participant, with the lowest priority and no waiting participants.
  ///
  /// - Parameter onClose: called once, on any thread, when the flight accepts no more participants.
  static func ofFlight(onClose: (@Sendable () -> Void)? = nil) -> FlightParticipant {
    FlightParticipant(.low, clients: [], isRequest: false, onClose: onClose)
  }

  /// Adds a waiting participant. `hasJoined` tells whether another request had started the flight.
  func enter(_ waiter: Int, participant: FlightParticipant, hasJoined: Bool) {
    participant.state.withLock { $0.hasJoined = hasJoined }
    let (body, isClosed) = state.withLock { state in
      state.waiting[waiter] = participant
      return (state.body, state.isClosed)
    }
    if isClosed { participant.close() }
    if let body { participant.announce(body) }
    raise(to: participant.observe { [weak self] in self?.raise(to: $0) })
    let clients = participant.observeClients { [weak self] in self?.add($0) }
    for client in clients { add(client) }
  }

  /// Adds a request that waits without a task, for the response alone.
  func follow(_ waiter: Int, priority: LoadPriority, client: LoadClient) {
    state.withLock { _ = $0.followers.insert(waiter) }
    raise(to: priority)
    add(client)
  }

  /// Removes a waiting participant, or a follower. The priority stays as it is.
  func leave(_ waiter: Int) {
    // Released outside the lock: this may be the last reference.
    _ = state.withLock { state in
      state.followers.remove(waiter)
      return state.waiting.removeValue(forKey: waiter)
    }
  }

  func raise(to value: LoadPriority) {
    let observers = state.withLock { state in
      guard value > state.priority else { return [] as [@Sendable (LoadPriority) -> Void] }
      state.priority = value
      return state.observers
    }
    for observer in observers { observer(value) }
  }

  func observe(_ observer: @escaping @Sendable (LoadPriority) -> Void) -> LoadPriority {
    state.withLock { state in
      state.observers.append(observer)
      return state.priority
    }
  }

  private func add(_ client: LoadClient) {
    let observers = state.withLock { state in
      state.clients.insert(client).inserted ? state.clientObservers : []
    }
    for observer in observers { observer(client) }
  }

  func observeClients(
    _ observer: @escaping @Sendable (LoadClient) -> Void
  ) -> Set<LoadClient> {
    state.withLock { state in
      state.clientObservers.append(observer)
      return state.clients
    }
  }

  var waiters: Int {
    guard !isRequest else { return 1 }
    let (followers, waiting) = state.withLock { ($0.followers.count, Array($0.waiting.values)) }
    return waiting.reduce(followers) { $0 + $1.waiters }
  }

  /// The number of requests that wait for this flight directly.
  var requests: Int {
    state.withLock { $0.followers.count + $0.waiting.values.count { $0.isRequest } }
  }

  // MARK: Streaming

  /// Announces a body to all participants, present and future.
  func announce(_ body: FlightBody) {
    let waiting = state.withLock { state in
      state.body = body
      return Array(state.waiting.values)
    }
    onBody?(body)
    for participant in waiting { participant.announce(body) }
  }

  /// Closes the flight to new participants, because only those present may have the response
  /// (`no-store`, `private`). Waiting flights close too.
  func close() {
    let waiting: [FlightParticipant]? = state.withLock { state in
      guard !state.isClosed else { return nil }
      state.isClosed = true
      return Array(state.waiting.values)
    }
    guard let waiting else { return }
    onClose?()
    for participant in waiting { participant.close() }
  }

  /// Whether another request had started the flight that this participant joined.
  var hasJoined: Bool { state.withLock { $0.hasJoined } }
}

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
