// FlightTable: who waits for which work. Pure: it is told what happened and returns what is to be done.

/// The flights of one level: at most one per key that can still be joined, each with the waiters that want its result.
///
/// Life of a flight: started by its first waiter, joined by others, ended by its result, by the last waiter leaving a
/// flight that is not detached, or by an operator. Ended flights cannot be joined: whoever asks next starts another
/// (SDWebImage: a finished or cancelled operation is replaced). Closed ones cannot either, since their result is for those
/// alone who asked in time; of one key at most `closedLimit` of them run, and the flight behind them waits for one to end.
struct FlightTable<Key: Hashable, Waiter> {
  typealias FlightID = Int
  typealias WaiterID = Int

  /// What became of a request to wait.
  struct Entry: Equatable {
    let flight: FlightID
    let waiter: WaiterID
    /// Whether the flight was running already; otherwise the caller is to start its work.
    let joined: Bool
    /// Whether the flight's work is not to start yet: `takeStartable` says when.
    var waits = false
  }

  /// What is to be done after a waiter left.
  struct Departure {
    /// Whoever left, to be told so.
    let waiter: Waiter
    /// The flight whose work nobody wants any more, to be cancelled.
    let abandoned: FlightID?
  }

  private struct Flight {
    let key: Key
    /// Whether it goes on when nobody waits for it.
    var isDetached = false
    var isClosed = false
    var waiters: [WaiterID: Waiter] = [:]
  }

  /// Most closed flights of one key at a time.
  static var closedLimit: Int { 4 }

  private var flights: [FlightID: Flight] = [:]
  private var joinable: [Key: FlightID] = [:]
  /// How many flights of a key are closed and running.
  private var closed: [Key: Int] = [:]
  /// Flights of a key whose work waits for a closed one to end, the first first.
  private var delayed: [Key: [FlightID]] = [:]
  private var startable: [FlightID] = []
  private var lastID = 0
  /// Flights that go on though nobody waits for them: their detached requests have gone.
  private(set) var unattendedCount = 0

  /// Flights running now.
  var flightCount: Int { flights.count }
  /// Waiters of all of them.
  var waiterCount: Int { flights.values.reduce(0) { $0 + $1.waiters.count } }

  /// Whether the flight has neither a result nor been abandoned.
  func isRunning(_ flight: FlightID) -> Bool { flights[flight] != nil }

  /// Waits for the flight of `key`, which is entered if it can be joined and made otherwise. One detached waiter makes
  /// it go on to its end.
  mutating func enter(_ key: Key, _ waiter: Waiter, isDetached: Bool = false) -> Entry {
    lastID += 1
    let waiterID = lastID
    if let id = joinable[key], let flight = flights[id] {
      if flight.waiters.isEmpty { unattendedCount -= 1 }
      flights[id]?.waiters[waiterID] = waiter
      if isDetached { flights[id]?.isDetached = true }
      return Entry(flight: id, waiter: waiterID, joined: true)
    }
    lastID += 1
    joinable[key] = lastID
    flights[lastID] = Flight(key: key, isDetached: isDetached, waiters: [waiterID: waiter])
    let waits = closed[key, default: 0] >= Self.closedLimit
    if waits { delayed[key, default: []].append(lastID) }
    return Entry(flight: lastID, waiter: waiterID, joined: false, waits: waits)
  }

  /// A running flight takes no new waiters, since its result is for no one who asks from now on.
  mutating func close(_ id: FlightID) {
    guard let flight = flights[id], !flight.isClosed else { return }
    flights[id]?.isClosed = true
    closed[flight.key, default: 0] += 1
    if joinable[flight.key] == id { joinable[flight.key] = nil }
  }

  /// The delayed flights whose work may start now; each is returned once.
  mutating func takeStartable() -> [FlightID] {
    let ready = startable.filter { flights[$0] != nil }
    startable = []
    return ready
  }

  /// Keys of flights that can be joined.
  var joinableKeys: [Key] { Array(joinable.keys) }

  /// The flight of `key` takes no new waiters: it goes on for those it has, and whoever asks next starts another.
  mutating func retire(_ key: Key) { joinable[key] = nil }

  /// One waiter goes; `nil` when it has its answer already.
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

  /// The work of a flight has a result; returns everyone who is to get it.
  mutating func finish(_ flight: FlightID) -> [Waiter] {
    let waiters = flights[flight].map { Array($0.waiters.values) } ?? []
    if flights[flight] != nil, waiters.isEmpty { unattendedCount -= 1 }
    end(flight)
    return waiters
  }

  /// Ends every flight; returns them with everyone who waited.
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
    // More than one only where a purge retired those before.
    if closed[key, default: 0] < Self.closedLimit {
      startable += delayed.removeValue(forKey: key) ?? []
    }
    if delayed[key]?.isEmpty == true { delayed[key] = nil }
  }
}
