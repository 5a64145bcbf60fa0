// Flights: coalesces work by key, and cancels it when the last participant leaves.

import Core

/// One level of coalescing.
///
/// A lock guards the state instead of an actor. So a cancellation takes effect before the call
/// returns, and entering a flight needs no hop. The lock is never held while a waiter resumes or a
/// task starts.
final class Flights<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  /// What a flight's end calls for a request without a task. Must not block.
  typealias Follower = @Sendable (Result<Value, ImageError>) -> Void

  /// Who waits for a flight: a task, or a follower.
  private struct Waiter: Sendable {
    let isTask: Bool
    let resume: Follower
  }

  private typealias Work = @Sendable (FlightParticipant) async throws(ImageError) -> Value
  private typealias Outcome = Lock<Result<Value, ImageError>>
  private typealias Table = FlightTable<Key, Waiter>

  private struct Flight {
    let participant: FlightParticipant
    var task: Task<Void, Never>?
    /// The work of a flight that may not start yet.
    var work: Work?
  }

  private struct State {
    var table = Table()
    var flights: [Table.FlightID: Flight] = [:]
  }

  private let state = Lock(State())
  private let started = Counter()
  private let coalesced = Counter()
  private let cancelled = Counter()

  /// Returns the value for `key`, from the running flight or from a new one that runs `work`.
  ///
  /// Cancelling the calling task throws `ImageError.cancelled` immediately. `work` is cancelled
  /// when its last participant leaves, unless one participant was detached.
  /// - Parameter participant: the caller's participant, whose priority raises the flight's. `work`
  ///   receives the flight's own participant.
  /// - Returns: the value, and whether the flight was already running.
  func value(
    for key: Key, participant: FlightParticipant, isDetached: Bool = false,
    work: @escaping @Sendable (FlightParticipant) async throws(ImageError) -> Value
  ) async throws(ImageError) -> (value: Value, joined: Bool) {
    let entry = Lock<Table.Entry?>(nil)
    let outcome = Outcome(.failure(.cancelled))
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        // The result passes through a lock, because the thread sanitizer does not track
        // continuations.
        let waiter = Waiter(isTask: true) { result in
          outcome.withLock { $0 = result }
          continuation.resume()
        }
        let (entered, shared) = state.withLock { state in
          let entered = state.table.enter(key, as: waiter, isDetached: isDetached)
          // Starting or joining the flight raises the priority below.
          var flight =
            state.flights[entered.flight]
            ?? Flight(participant: .ofFlight { [weak self] in self?.close(entered.flight) })
          if entered.waits { flight.work = work }
          state.flights[entered.flight] = flight
          return (entered, flight.participant)
        }
        entry.withLock { $0 = entered }
        shared.enter(entered.waiter, participant: participant, hasJoined: entered.joined)
        if entered.joined {
          coalesced.add()
        } else if !entered.waits {
          start(entered.flight, participant: shared, work: work)
        }
        // A cancellation handler that ran before this point found no entry, and runs only once.
        if Task.isCancelled { leave(entered) }
      }
    } onCancel: {
      if let entered = entry.withLock({ $0 }) { leave(entered) }
    }
    return (try outcome.withLock { $0 }.get(), entry.withLock { $0?.joined ?? false })
  }

  /// Joins the flight of `key`, if one can be joined, for a request without a task.
  ///
  /// - Parameter follower: called once, on any thread, perhaps before this returns.
  /// - Returns: a function that leaves the flight, as the cancellation of a task does; `nil`
  ///   without a flight.
  func follow(
    _ key: Key, priority: LoadPriority, client: LoadClient, isDetached: Bool,
    _ follower: @escaping Follower
  ) -> (@Sendable () -> Void)? {
    let joined = state.withLock { state -> (Table.Entry, FlightParticipant)? in
      let waiter = Waiter(isTask: false, resume: follower)
      guard let entry = state.table.join(key, as: waiter, isDetached: isDetached) else {
        return nil
      }
      guard let flight = state.flights[entry.flight] else {
        // The table and the flights are changed together.
        preconditionFailure("a flight without its participant")
      }
      return (entry, flight.participant)
    }
    guard let (entry, participant) = joined else { return nil }
    participant.follow(entry.waiter, priority: priority, client: client)
    coalesced.add()
    return { self.leave(entry) }
  }

  /// Ends all flights, cancels their work and resumes all waiters with `error`.
  ///
  /// - Returns: the number of waiting requests, without flights that wait for flights.
  func cancelAll(_ error: ImageError) -> Int {
    let (ended, flights) = state.withLock { state in
      defer { state.flights = [:] }
      return (state.table.finishAll(), Array(state.flights.values))
    }
    for flight in flights { flight.task?.cancel() }
    let waiters = ended.flatMap(\.waiters)
    for _ in ended { cancelled.add() }
    Self.resume(waiters, returning: .failure(error))
    return flights.reduce(0) { $0 + $1.participant.requests }
  }

  /// Closes the flights of matching keys to new participants. The flights continue for the
  /// participants they have.
  func retire(where matches: (Key) -> Bool) {
    let keys = state.withLock { $0.table.joinableKeys }.filter(matches)
    // A flight that started in between may be retired too: its work is then done once more.
    state.withLock { state in
      for key in keys { state.table.retire(key) }
    }
  }

  /// Closes a flight whose result is only for its present participants.
  private func close(_ flight: Table.FlightID) { state.withLock { $0.table.close(flight) } }

  /// The number of waiters of the flight of `key` that can be joined; 0 without one.
  func waiters(of key: Key) -> Int { state.withLock { $0.table.waiters(of: key) } }

  /// Adds running flights of a kind, `source` or `variant`, waiting requests and counts to
  /// `figures`.
  func add(to figures: inout Figures, kind: String) {
    let (flights, waiters) = state.withLock { ($0.table.flightCount, $0.table.waiterCount) }
    figures.add(
      kind + "s", flights, "pictor_flights_running", "Running flights.", ["kind": kind])
    figures.add(
      "waiting", waiters, "pictor_flight_participants_waiting", "Requests that wait for flights.")
    figures.add("started", started.value, "pictor_flights_started_total", "Flights started.")
    figures.add(
      "coalesced", coalesced.value, "pictor_flights_coalesced_requests_total",
      "Requests that joined a flight.")
    figures.add(
      "cancelled", cancelled.value, "pictor_flights_cancelled_total", "Flights cancelled.")
  }

  /// The number of detached flights that run without waiters.
  var unattendedCount: Int { state.withLock { $0.table.unattendedCount } }

  private func start(
    _ flight: Table.FlightID, participant: FlightParticipant, work: @escaping Work
  ) {
    started.add()
    // An immediate task runs on this thread until its first suspension, which saves a thread hop.
    let task = Task.immediate {
      let result: Result<Value, ImageError>
      do throws(ImageError) {
        result = .success(try await work(participant))
      } catch {
        result = .failure(error)
      }
      self.finish(flight, with: result)
    }
    let isRunning = state.withLock { state in
      // The task may have finished, or its last waiter may have left, before this point.
      let isRunning = state.table.isRunning(flight)
      if isRunning { state.flights[flight]?.task = task }
      return isRunning
    }
    if !isRunning { task.cancel() }
  }

  private func finish(_ flight: Table.FlightID, with result: Result<Value, ImageError>) {
    let (waiters, next) = state.withLock { state in
      state.flights[flight] = nil
      let waiters = state.table.finish(flight)
      return (waiters, takeStartable(&state))
    }
    Self.resume(waiters, returning: result)
    for (flight, participant, work) in next {
      start(flight, participant: participant, work: work)
    }
  }

  /// Resumes tasks, which is quick, and then calls followers.
  private static func resume(_ waiters: [Waiter], returning result: Result<Value, ImageError>) {
    for waiter in waiters where waiter.isTask { waiter.resume(result) }
    for waiter in waiters where !waiter.isTask { waiter.resume(result) }
  }

  /// Returns the delayed flights that may start now.
  private func takeStartable(
    _ state: inout State
  ) -> [(flight: Table.FlightID, participant: FlightParticipant, work: Work)] {
    state.table.takeStartable().compactMap { id in
      guard let flight = state.flights[id], let work = flight.work else { return nil }
      state.flights[id]?.work = nil
      return (id, flight.participant, work)
    }
  }

  private func leave(_ entry: Table.Entry) {
    let (departure, task, next) = state.withLock { state in
      let departure = state.table.leave(entry)
      state.flights[entry.flight]?.participant.leave(entry.waiter)
      let task = departure?.abandoned.flatMap { state.flights.removeValue(forKey: $0)?.task }
      return (departure, task, takeStartable(&state))
    }
    guard let departure else { return }
    if departure.abandoned != nil { cancelled.add() }
    task?.cancel()
    departure.waiter.resume(.failure(.cancelled))
    for (flight, participant, work) in next {
      start(flight, participant: participant, work: work)
    }
  }
}

/// The flights of one level, with the waiters of each. At most one flight per key can be joined.
///
/// - The first waiter starts a flight, and others join it.
/// - A flight ends with its result, when an operator ends it, or when its last waiter leaves and it
///   is not detached.
/// - An ended flight cannot be joined: the next request starts a new flight (as in SDWebImage).
/// - A closed flight cannot be joined either: its result is only for the waiters it has. At most
///   `closedLimit` closed flights run per key, and the next flight of that key waits for one to
///   end.
struct FlightTable<Key: Hashable, Waiter> {
  typealias FlightID = Int
  typealias WaiterID = Int

  /// The result of `enter`.
  struct Entry: Equatable {
    let flight: FlightID
    let waiter: WaiterID
    /// Whether the flight was running already. Otherwise the caller starts its work, unless `waits`
    /// is set.
    let joined: Bool
    /// Whether the caller must not start the work until `takeStartable` returns the flight.
    var waits = false
  }

  /// The result of `leave`.
  struct Departure {
    /// The waiter that left, for the caller to resume.
    let waiter: Waiter
    /// The flight that lost its last waiter, for the caller to cancel.
    let abandoned: FlightID?
  }

  private struct Flight {
    let key: Key
    /// Whether the flight continues without waiters.
    var isDetached = false
    var isClosed = false
    var waiters: [WaiterID: Waiter] = [:]
  }

  /// The maximum number of closed flights that run for one key.
  static var closedLimit: Int { 4 }

  private var flights: [FlightID: Flight] = [:]
  private var joinable: [Key: FlightID] = [:]
  /// The number of running closed flights per key.
  private var closed: [Key: Int] = [:]
  /// Flights that wait for a closed flight of their key to end, in order of arrival.
  private var delayed: [Key: [FlightID]] = [:]
  private var startable: [FlightID] = []
  private var lastID = 0
  /// The number of detached flights that run without waiters.
  private(set) var unattendedCount = 0

  var flightCount: Int { flights.count }
  /// The number of waiters in all flights.
  var waiterCount: Int { flights.values.reduce(0) { $0 + $1.waiters.count } }

  /// Returns whether the flight has not ended yet.
  func isRunning(_ flight: FlightID) -> Bool { flights[flight] != nil }

  /// Adds a waiter to the flight of `key`, or to a new flight if none can be joined. One detached
  /// waiter makes the flight detached.
  mutating func enter(_ key: Key, as waiter: Waiter, isDetached: Bool = false) -> Entry {
    if let entry = join(key, as: waiter, isDetached: isDetached) { return entry }
    let waiterID = lastID + 1
    lastID += 2
    joinable[key] = lastID
    flights[lastID] = Flight(key: key, isDetached: isDetached, waiters: [waiterID: waiter])
    let waits = closed[key, default: 0] >= Self.closedLimit
    if waits { delayed[key, default: []].append(lastID) }
    return Entry(flight: lastID, waiter: waiterID, joined: false, waits: waits)
  }

  /// Adds a waiter to the flight of `key`. Returns `nil` if none can be joined.
  mutating func join(_ key: Key, as waiter: Waiter, isDetached: Bool = false) -> Entry? {
    guard let id = joinable[key], let isEmpty = flights[id]?.waiters.isEmpty else { return nil }
    lastID += 1
    if isEmpty { unattendedCount -= 1 }
    flights[id]?.waiters[lastID] = waiter
    if isDetached { flights[id]?.isDetached = true }
    return Entry(flight: id, waiter: lastID, joined: true)
  }

  /// Closes a running flight to new waiters, because its result is not for later requests.
  mutating func close(_ id: FlightID) {
    guard let flight = flights[id], !flight.isClosed else { return }
    flights[id]?.isClosed = true
    closed[flight.key, default: 0] += 1
    if joinable[flight.key] == id { joinable[flight.key] = nil }
  }

  /// Returns the delayed flights that may start now, each once.
  mutating func takeStartable() -> [FlightID] {
    let ready = startable.filter { flights[$0] != nil }
    startable = []
    return ready
  }

  /// Keys of flights that can be joined.
  var joinableKeys: [Key] { Array(joinable.keys) }

  /// The number of waiters of the flight of `key` that can be joined; 0 without one. A detached
  /// flight without waiters counts as one.
  func waiters(of key: Key) -> Int {
    joinable[key].flatMap { flights[$0] }.map { max($0.waiters.count, 1) } ?? 0
  }

  /// Closes the flight of `key` to new waiters. It continues for the waiters it has, and the next
  /// request starts a new flight.
  mutating func retire(_ key: Key) { joinable[key] = nil }

  /// Removes a waiter. Returns `nil` if the waiter already has its result.
  mutating func leave(_ entry: Entry) -> Departure? {
    guard let waiter = flights[entry.flight]?.waiters.removeValue(forKey: entry.waiter) else {
      return nil
    }
    guard let flight = flights[entry.flight], flight.waiters.isEmpty else {
      return Departure(waiter: waiter, abandoned: nil)
    }
    guard !flight.isDetached else {
      unattendedCount += 1
      return Departure(waiter: waiter, abandoned: nil)
    }
    end(entry.flight)
    return Departure(waiter: waiter, abandoned: entry.flight)
  }

  /// Ends a flight that has a result and returns its waiters.
  mutating func finish(_ flight: FlightID) -> [Waiter] {
    let waiters = flights[flight].map { Array($0.waiters.values) } ?? []
    if flights[flight] != nil, waiters.isEmpty { unattendedCount -= 1 }
    end(flight)
    return waiters
  }

  /// Ends all flights and returns them with their waiters.
  mutating func finishAll() -> [(flight: FlightID, waiters: [Waiter])] {
    let last = lastID
    defer {
      self = Self()
      lastID = last
    }
    return flights.map { ($0, Array($1.waiters.values)) }
  }

  private mutating func end(_ id: FlightID) {
    guard let flight = flights.removeValue(forKey: id) else { return }
    let key = flight.key
    if joinable[key] == id { joinable[key] = nil }
    delayed[key]?.removeAll { $0 == id }
    if flight.isClosed, let count = closed[key] { closed[key] = count > 1 ? count - 1 : nil }
    // More than one flight is delayed only if a purge retired the earlier ones.
    if closed[key, default: 0] < Self.closedLimit {
      startable += delayed.removeValue(forKey: key) ?? []
    }
    if delayed[key]?.isEmpty == true { delayed[key] = nil }
  }
}
