// JobQueue: the jobs that wait for a worker, by priority, client and arrival.

import Core

/// The position class of a waiting job.
enum JobPriority: Comparable {
  /// After all other jobs, regardless of its priority: it is expensive.
  case later
  /// After all of a higher priority.
  case by(LoadPriority)
  /// Before all others, because a worker has been woken for it.
  case next
}

/// A priority queue in which clients take turns: among jobs of one priority, the client with the
/// fewest running jobs comes first, then the one that has waited longest for a turn, then arrival.
/// Jobs of a client above its share of the workers compare as of the lowest priority, as downloads
/// do (`ClientPlaces`). A lower priority has a turn after `maximumPassed` jobs of higher ones.
///
/// The queue is short, so a search through all jobs finds the next one.
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
    let id: UInt64
    let job: Job
    var turn: JobPriority
    /// The memory that the job needs besides its worker's own, in bytes; 0 if it is not known to be
    /// expensive.
    let bytes: Int
    /// Whom the job works for, at least one. It counts against the first one's part of the queue.
    var clients: [LoadClient]
  }

  private typealias Order = (Int, Int, Int, Int, Int)

  /// The number of jobs of higher priorities after which a lower one has a turn.
  static var maximumPassed: Int { 8 }
  /// The maximum number of clients of a job. Further ones change little.
  private static var maximumClients: Int { 16 }
  /// Clients whose last turns are remembered.
  private static var maximumTurns: Int { 4_096 }

  /// The jobs in their order of arrival.
  private var entries: [Entry] = []
  /// The number of jobs of each priority.
  private var counts = [Int](repeating: 0, count: JobPriority.next.index + 1)
  /// For each priority, the jobs of higher ones that were taken while jobs of this one waited.
  private var passed = [Int](repeating: 0, count: JobPriority.next.index + 1)
  /// The running jobs of each client.
  private var running: ClientPlaces
  /// When each client had its last turn.
  private var turns = BoundedTable<LoadClient, Int>(limit: maximumTurns)
  private var turnCount = 0

  /// Creates an empty queue.
  ///
  /// - Parameter share: the workers that a client has while others wait.
  init(share: Int) { running = ClientPlaces(share: share) }

  /// The number of waiting jobs.
  var count: Int { entries.count }

  /// Returns the number of waiting jobs of this priority.
  func count(of turn: JobPriority) -> Int { counts[turn.index] }

  /// Returns the number of waiting jobs that count as the client's, without those with a woken
  /// slot.
  func count(of client: LoadClient) -> Int {
    entries.count { $0.clients[0] == client && $0.turn != .next }
  }

  /// Adds a job behind all others of its priority and clients.
  mutating func append(
    _ id: UInt64, job: Job, clients: [LoadClient] = [.unlimited], turn: JobPriority, bytes: Int = 0
  ) {
    counts[turn.index] += 1
    entries.append(
      Entry(
        id: id, job: job, turn: turn, bytes: bytes,
        clients: clients.isEmpty ? [.background] : Array(clients.prefix(Self.maximumClients))))
  }

  /// Adds a client that a waiting job is for. Ignores a job that does not wait.
  mutating func join(_ id: UInt64, client: LoadClient) {
    guard let place = place(of: id), entries[place].clients.count < Self.maximumClients,
      !entries[place].clients.contains(client)
    else { return }
    entries[place].clients.append(client)
  }

  /// The memory of the first expensive job, in bytes; `nil` without one.
  var bytesOfFirstLater: Int? {
    first(in: JobPriority.later.index...JobPriority.later.index).map { entries[$0.place].bytes }
  }

  /// Raises the priority of a job; never lowers it. The job keeps its position in the order of
  /// arrival. Ignores a job that does not wait.
  mutating func raise(_ id: UInt64, to turn: JobPriority) {
    // An expensive job is expensive for every participant.
    guard let place = place(of: id), entries[place].turn < turn, entries[place].turn != .later
    else { return }
    move(place, to: turn)
  }

  /// Lowers the matching jobs to `.later`, except those of `.next`.
  mutating func postpone(where isMatch: (Job) -> Bool) {
    for place in entries.indices where entries[place].turn != .next && isMatch(entries[place].job) {
      move(place, to: .later)
    }
  }

  /// Takes the first job.
  ///
  /// - Parameter laterToo: Whether this may be an expensive job.
  mutating func popFirst(laterToo: Bool = true) -> Taken? {
    let top = JobPriority.next.index
    let lowest = JobPriority.by(.low).index
    if counts[top] > 0 { return pop(first(in: top...top)) }
    let overdue = (lowest..<top).last { counts[$0] > 0 && passed[$0] >= Self.maximumPassed }
    if let found = first(in: overdue.map { $0...$0 } ?? lowest...(top - 1)) { return pop(found) }
    return laterToo ? popLater() : nil
  }

  /// Takes the first expensive job.
  mutating func popLater() -> Taken? {
    pop(first(in: JobPriority.later.index...JobPriority.later.index))
  }

  /// Records that a taken job has ended, or waits again.
  mutating func end(_ client: LoadClient) { running.end(client, isStalled: false) }

  /// Removes a job. Returns `nil` if it does not wait.
  mutating func remove(_ id: UInt64) -> Job? { place(of: id).map { remove(at: $0).job } }

  /// Removes and returns the matching jobs, in their order of arrival.
  mutating func removeAll(where isMatch: (Job) -> Bool) -> [Job] {
    let ids = entries.filter { isMatch($0.job) }.map(\.id)
    return ids.compactMap { remove($0) }
  }

  /// Removes and returns all jobs.
  mutating func removeAll() -> [Job] { removeAll { _ in true } }

  private func place(of id: UInt64) -> Int? { entries.firstIndex { $0.id == id } }

  /// Returns the job whose turn it is.
  private func first(in range: ClosedRange<Int>) -> (place: Int, client: LoadClient)? {
    guard counts[range].contains(where: { $0 > 0 }) else { return nil }
    let quick = JobPriority.by(.low).index..<JobPriority.next.index
    var known: [LoadClient: (isAboveShare: Bool, running: Int, turn: Int)] = [:]
    var best: (order: Order, place: Int, client: LoadClient)?
    for (place, entry) in entries.enumerated() {
      let index = entry.turn.index
      guard range.contains(index) else { continue }
      for client in entry.clients {
        let own =
          known[client]
          ?? (!running.isWithinShare(client), running.turn(of: client), turns[client] ?? 0)
        known[client] = own
        let order: Order = (
          own.isAboveShare && quick.contains(index) ? quick.lowerBound : index, -own.running,
          -own.turn, index, -place
        )
        if best.map({ $0.order < order }) ?? true { best = (order, place, client) }
      }
    }
    return best.map { ($0.place, $0.client) }
  }

  private mutating func pop(_ found: (place: Int, client: LoadClient)?) -> Taken? {
    guard let (place, client) = found else { return nil }
    let entry = remove(at: place)
    turnCount += 1
    if case .network = client { turns.setNewest(turnCount, for: client) }
    running.start(client)
    let index = entry.turn.index
    passed[index] = 0
    if entry.turn != .next {
      for lower in 0..<index where counts[lower] > 0 { passed[lower] += 1 }
    }
    return Taken(
      id: entry.id, job: entry.job, bytes: entry.turn == .later ? entry.bytes : nil, client: client)
  }

  private mutating func remove(at place: Int) -> Entry {
    let entry = entries.remove(at: place)
    leave(entry.turn)
    return entry
  }

  private mutating func move(_ place: Int, to turn: JobPriority) {
    leave(entries[place].turn)
    counts[turn.index] += 1
    entries[place].turn = turn
  }

  private mutating func leave(_ turn: JobPriority) {
    counts[turn.index] -= 1
    if counts[turn.index] == 0 { passed[turn.index] = 0 }
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
