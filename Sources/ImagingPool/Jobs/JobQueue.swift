// JobQueue: the jobs that wait for a worker, by priority and arrival.

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

/// A priority queue, first come, first served within a priority. Appending, taking and removing
/// take constant time. A removed job leaves a hole, which is skipped later. Raising a job takes
/// time in proportion to the later jobs of its new priority.
struct JobQueue<Job> {
  private struct Entry {
    let job: Job
    var turn: JobPriority
    /// The memory that the job needs besides its worker's own, in bytes; 0 if it is not known to be expensive.
    let bytes: Int
    /// The position in the order of arrival.
    let number: Int
  }

  /// The jobs of one priority by arrival, with holes.
  private struct Lane {
    /// The number of jobs, without holes.
    var count = 0
    var order = Deque<(number: Int, id: UInt64)>()
  }

  private var entries: [UInt64: Entry] = [:]
  private var lanes = [Lane](repeating: Lane(), count: JobPriority.next.index + 1)
  private var arrivals = 0

  /// The number of waiting jobs.
  var count: Int { entries.count }

  /// Returns the number of waiting jobs of this priority.
  func count(of turn: JobPriority) -> Int { lanes[turn.index].count }

  /// The number of places in memory, holes included; for tests.
  var places: Int { lanes.reduce(0) { $0 + $1.order.count } }

  /// Adds a job behind all others of its priority.
  mutating func append(_ id: UInt64, job: Job, turn: JobPriority, bytes: Int = 0) {
    arrivals += 1
    insert(id, entry: Entry(job: job, turn: turn, bytes: bytes, number: arrivals))
  }

  /// The memory of the first expensive job, in bytes; `nil` without one. Removes the holes before it.
  mutating func bytesOfFirstLater() -> Int? {
    let index = JobPriority.later.index
    while let (_, id) = lanes[index].order.first {
      if let entry = entries[id], entry.turn == .later { return entry.bytes }
      _ = lanes[index].order.popFirst()
    }
    return nil
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

  /// Takes the first job of the highest priority.
  ///
  /// - Parameter laterToo: Whether this may be an expensive job.
  mutating func popFirst(laterToo: Bool = true) -> (id: UInt64, job: Job, bytes: Int?)? {
    guard let index = lanes.lastIndex(where: { $0.count > 0 }), index > 0 || laterToo else {
      return nil
    }
    return pop(from: index)
  }

  /// Takes the first expensive job.
  mutating func popLater() -> (id: UInt64, job: Job, bytes: Int?)? {
    lanes[JobPriority.later.index].count > 0 ? pop(from: JobPriority.later.index) : nil
  }

  /// - Returns: `bytes` only for an expensive job.
  private mutating func pop(from index: Int) -> (id: UInt64, job: Job, bytes: Int?)? {
    while let (_, id) = lanes[index].order.popFirst() {
      if let entry = entries[id], entry.turn.index == index, let job = remove(id) {
        return (id, job, entry.turn == .later ? entry.bytes : nil)
      }
    }
    return nil
  }

  /// Removes a job. Returns `nil` if it does not wait.
  mutating func remove(_ id: UInt64) -> Job? {
    guard let entry = entries.removeValue(forKey: id) else { return nil }
    lanes[entry.turn.index].count -= 1
    compact(entry.turn.index)
    return entry.job
  }

  /// Removes and returns the matching jobs, unordered.
  mutating func removeAll(where isMatch: (Job) -> Bool) -> [Job] {
    let ids = entries.filter { isMatch($0.value.job) }.map(\.key)
    return ids.compactMap { remove($0) }
  }

  /// Removes and returns all jobs in their order.
  mutating func removeAll() -> [Job] {
    var jobs: [Job] = []
    while let (_, job, _) = popFirst() { jobs.append(job) }
    return jobs
  }

  private mutating func insert(_ id: UInt64, entry: Entry) {
    let index = entry.turn.index
    entries[id] = entry
    lanes[index].count += 1
    var place = lanes[index].order.endIndex
    while place > 0, lanes[index].order[place - 1].number > entry.number {
      place -= 1
    }
    lanes[index].order.insert((entry.number, id), at: place)
  }

  /// Removes the holes when they outnumber the jobs, so that time and memory stay in proportion to
  /// the jobs. A raised job is a hole in its old lane.
  private mutating func compact(_ index: Int) {
    guard lanes[index].order.count > 2 * lanes[index].count + 32 else { return }
    let entries = entries
    lanes[index].order.removeAll { entries[$0.id]?.turn.index != index }
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
