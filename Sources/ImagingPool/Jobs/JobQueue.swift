// JobQueue: the jobs that wait for a worker, by priority, client and arrival.

import Model
import Platform

/// The position class of a waiting job.
enum JobPriority: Comparable {
  /// After all other jobs, regardless of its priority: it is expensive.
  case later
  /// After all of a higher priority.
  case by(LoadPriority)
  /// Before all others, because a worker has been woken for it.
  case next
}

/// A priority queue in which clients take turns: among jobs of one priority, the client with the fewest running jobs comes
/// first, then the one that has waited longest for a turn, then arrival. Jobs of a client above its share of the workers
/// compare as of the lowest priority, as downloads do (`ClientPlaces`). A lower priority has a turn after
/// `maximumPassed` jobs of higher ones.
///
/// Appending and removing take constant time for each client of the job, taking takes time linear in the number of
/// clients. A removed job leaves a hole, except at the front. Raising a job takes time in proportion to the later
/// jobs of its new priority.
struct JobQueue<Job> {
  /// A job that leaves the queue for a slot.
  struct Taken {
    let id: UInt64
    let job: Job
    /// The memory of an expensive job; `nil` for any other.
    let bytes: Int?
    /// The client whose turn it was. It has a running job until `end`.
    let client: LoadClient
  }

  private struct Entry {
    let job: Job
    var turn: JobPriority
    /// The memory that the job needs besides its worker's own, in bytes; 0 if it is not known to be expensive.
    let bytes: Int
    /// The position in the order of arrival.
    let number: Int
    /// Whom the job works for, at least one. It counts against the first one's part of the queue.
    var clients: [LoadClient]
  }

  private typealias Place = (number: Int, id: UInt64)

  /// The jobs of one priority.
  private struct Lane {
    /// The number of jobs.
    var count = 0
    /// The number of places that jobs have, one for each of their clients.
    var live = 0
    /// The number of places, holes included.
    var places = 0
    /// The places of each client by arrival. The first one of each is no hole.
    var orders: [LoadClient: Deque<Place>] = [:]
    /// The jobs of higher priorities that were taken while jobs of this one waited.
    var passed = 0
  }

  private typealias Order = (Int, Int, Int, Int, Int)

  /// The number of jobs of higher priorities after which a lower one has a turn.
  static var maximumPassed: Int { 8 }
  /// The maximum number of clients of a job. Further ones change little.
  private static var maximumClients: Int { 16 }
  /// Clients whose last turns are remembered.
  private static var maximumTurns: Int { 4_096 }

  private var entries: [UInt64: Entry] = [:]
  private var lanes = [Lane](repeating: Lane(), count: JobPriority.next.index + 1)
  private var arrivals = 0
  /// The running jobs of each client.
  private var running: ClientPlaces
  /// When each client had its last turn.
  private var turns = BoundedTable<LoadClient, Int>(limit: maximumTurns)
  private var turnCount = 0
  /// The number of waiting jobs that count as each client's.
  private var counts: [LoadClient: Int] = [:]

  /// Creates an empty queue.
  ///
  /// - Parameter share: the workers that a client has while others wait.
  init(share: Int) { running = ClientPlaces(share: share) }

  /// The number of waiting jobs.
  var count: Int { entries.count }

  /// Returns the number of waiting jobs of this priority.
  func count(of turn: JobPriority) -> Int { lanes[turn.index].count }

  /// Returns the number of waiting jobs that count as the client's, without those with a woken slot.
  func count(of client: LoadClient) -> Int { counts[client] ?? 0 }

  /// The number of places in memory, holes included; for tests.
  var places: Int { lanes.reduce(0) { $0 + $1.places } }

  /// Adds a job behind all others of its priority and clients.
  mutating func append(
    _ id: UInt64, job: Job, clients: [LoadClient] = [.unlimited], turn: JobPriority, bytes: Int = 0
  ) {
    arrivals += 1
    insert(
      id,
      entry: Entry(
        job: job, turn: turn, bytes: bytes, number: arrivals,
        clients: clients.isEmpty ? [.background] : Array(clients.prefix(Self.maximumClients))))
  }

  /// Adds a client that a waiting job is for. Ignores a job that does not wait.
  mutating func join(_ id: UInt64, client: LoadClient) {
    guard var entry = entries[id], entry.clients.count < Self.maximumClients,
      !entry.clients.contains(client)
    else { return }
    _ = remove(id)
    entry.clients.append(client)
    insert(id, entry: entry)
  }

  /// The memory of the first expensive job, in bytes; `nil` without one.
  var bytesOfFirstLater: Int? {
    first(in: JobPriority.later.index...JobPriority.later.index).flatMap { entries[$0.id]?.bytes }
  }

  /// Raises the priority of a job; never lowers it. The job keeps its position in the order of
  /// arrival. Ignores a job that does not wait.
  mutating func raise(_ id: UInt64, to turn: JobPriority) {
    // An expensive job is expensive for every participant.
    guard var entry = entries[id], entry.turn < turn, entry.turn != .later else { return }
    _ = remove(id)
    entry.turn = turn
    insert(id, entry: entry)
  }

  /// Lowers the matching jobs to `.later`, except those of `.next`.
  mutating func postpone(where isMatch: (Job) -> Bool) {
    let ids = entries.filter { entry in
      if case .by = entry.value.turn { return isMatch(entry.value.job) }
      return false
    }.sorted { $0.value.number < $1.value.number }.map(\.key)
    for id in ids {
      guard var entry = entries[id] else { continue }
      _ = remove(id)
      entry.turn = .later
      insert(id, entry: entry)
    }
  }

  /// Takes the first job.
  ///
  /// - Parameter laterToo: Whether this may be an expensive job.
  mutating func popFirst(laterToo: Bool = true) -> Taken? {
    let top = JobPriority.next.index
    let lowest = JobPriority.by(.low).index
    if lanes[top].count > 0 { return pop(first(in: top...top)) }
    let overdue = (lowest..<top).last {
      lanes[$0].count > 0 && lanes[$0].passed >= Self.maximumPassed
    }
    if let found = first(in: overdue.map { $0...$0 } ?? lowest...(top - 1)) { return pop(found) }
    return laterToo ? popLater() : nil
  }

  /// Takes the first expensive job.
  mutating func popLater() -> Taken? {
    pop(first(in: JobPriority.later.index...JobPriority.later.index))
  }

  /// Records that a taken job has ended, or waits again.
  mutating func end(_ client: LoadClient) { running.end(client, isStalled: false) }

  /// Returns the job whose turn it is.
  private func first(in range: ClosedRange<Int>) -> (id: UInt64, client: LoadClient)? {
    let quick = JobPriority.by(.low).index..<JobPriority.next.index
    var best: (order: Order, id: UInt64, client: LoadClient)?
    for index in range {
      for (client, places) in lanes[index].orders {
        guard let place = places.first else { continue }
        let isAboveShare = quick.contains(index) && !running.isWithinShare(client)
        let order: Order = (
          isAboveShare ? quick.lowerBound : index, -running.turn(of: client),
          -(turns[client] ?? 0), index, -place.number
        )
        if best.map({ $0.order < order }) ?? true { best = (order, place.id, client) }
      }
    }
    return best.map { ($0.id, $0.client) }
  }

  private mutating func pop(_ found: (id: UInt64, client: LoadClient)?) -> Taken? {
    guard let (id, client) = found, let entry = entries[id], let job = remove(id) else {
      return nil
    }
    turnCount += 1
    if case .network = client { turns.setNewest(turnCount, for: client) }
    running.start(client)
    let index = entry.turn.index
    lanes[index].passed = 0
    if entry.turn != .next {
      for lower in 0..<index where lanes[lower].count > 0 { lanes[lower].passed += 1 }
    }
    return Taken(id: id, job: job, bytes: entry.turn == .later ? entry.bytes : nil, client: client)
  }

  /// Removes a job. Returns `nil` if it does not wait.
  mutating func remove(_ id: UInt64) -> Job? {
    guard let entry = entries.removeValue(forKey: id) else { return nil }
    let index = entry.turn.index
    lanes[index].count -= 1
    lanes[index].live -= entry.clients.count
    if lanes[index].count == 0 { lanes[index].passed = 0 }
    if entry.turn != .next { count(entry.clients[0], adding: -1) }
    for client in entry.clients { dropHoles(of: client, in: index) }
    compact(index)
    return entry.job
  }

  /// Removes and returns the matching jobs, unordered.
  mutating func removeAll(where isMatch: (Job) -> Bool) -> [Job] {
    let ids = entries.filter { isMatch($0.value.job) }.map(\.key)
    return ids.compactMap { remove($0) }
  }

  /// Removes and returns all jobs, unordered.
  mutating func removeAll() -> [Job] { removeAll { _ in true } }

  private mutating func insert(_ id: UInt64, entry: Entry) {
    let index = entry.turn.index
    entries[id] = entry
    lanes[index].count += 1
    lanes[index].live += entry.clients.count
    lanes[index].places += entry.clients.count
    if entry.turn != .next { count(entry.clients[0], adding: 1) }
    for client in entry.clients {
      lanes[index].orders[client, default: Deque()].insert((entry.number, id), by: entry.number)
    }
  }

  private mutating func count(_ client: LoadClient, adding change: Int) {
    let count = (counts[client] ?? 0) + change
    counts[client] = count > 0 ? count : nil
  }

  /// Whether no job has this place of the lane.
  private func isHole(_ place: Place, in index: Int) -> Bool {
    guard let entry = entries[place.id] else { return true }
    return entry.turn.index != index || entry.number != place.number
  }

  private mutating func dropHoles(of client: LoadClient, in index: Int) {
    while let place = lanes[index].orders[client]?.first, isHole(place, in: index) {
      _ = lanes[index].orders[client]?.popFirst()
      lanes[index].places -= 1
    }
    if lanes[index].orders[client]?.isEmpty == true { lanes[index].orders[client] = nil }
  }

  /// Removes the holes when they outnumber the jobs' places, so that time and memory stay in proportion to the jobs.
  private mutating func compact(_ index: Int) {
    guard lanes[index].places > 2 * lanes[index].live + 32 else { return }
    let clients = Array(lanes[index].orders.keys)
    for client in clients {
      guard var order = lanes[index].orders.removeValue(forKey: client) else { continue }
      order.removeAll { isHole($0, in: index) }
      if !order.isEmpty { lanes[index].orders[client] = order }
    }
    lanes[index].places = lanes[index].live
  }
}

extension Deque<(number: Int, id: UInt64)> {
  /// Inserts a place where its number belongs.
  fileprivate mutating func insert(_ place: Element, by number: Int) {
    var index = endIndex
    while index > 0, self[index - 1].number > number { index -= 1 }
    insert(place, at: index)
  }
}

extension JobPriority {
  /// The rank among all priorities, lowest first.
  fileprivate var index: Int {
    switch self {
    case .later: 0
    case .by(let priority): priority.rank + 1
    case .next: LoadPriority.allCases.count + 1
    }
  }
}
