// FlightTable: tracks which participants wait for which flight, as a pure state machine.

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
    defer { self = Self(lastID: lastID) }
    return flights.map { ($0, Array($1.waiters.values)) }
  }

  init() {}

  private init(lastID: Int) { self.lastID = lastID }

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
