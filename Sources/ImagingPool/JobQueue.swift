// JobQueue: the jobs that wait for a worker, in the order in which they are to be done.

import Model

/// When it is a waiting job's turn.
enum JobPriority: Comparable {
  /// After all that is quick, whatever its priority: it takes long.
  case later
  /// After all of a higher priority.
  case by(LoadPriority)
  /// Before all others: a worker is on its way to it.
  case next
}

/// Jobs in the order of their turns, first come, first served within one. Adding and taking take constant time; so does
/// leaving, which leaves a hole behind that is passed over later. Moving up takes as long as there are later ones where
/// the job comes to: none, for the job that came last.
struct JobQueue<Job> {
  private struct Entry {
    let job: Job
    var turn: JobPriority
    /// Which job it is in order of arrival.
    let number: Int
  }

  /// The jobs of one turn by arrival, and holes.
  private struct Lane {
    /// How many wait here.
    var count = 0
    var order: [(number: Int, id: UInt64)] = []
    var head = 0
  }

  private var entries: [UInt64: Entry] = [:]
  private var lanes = [Lane](repeating: Lane(), count: JobPriority.next.index + 1)
  private var arrivals = 0

  /// How many wait.
  var count: Int { entries.count }

  /// How many wait for this turn.
  func count(of turn: JobPriority) -> Int { lanes[turn.index].count }

  /// Places in memory, holes included; for tests.
  var places: Int { lanes.reduce(0) { $0 + $1.order.count } }

  /// Adds a job behind all others of its turn.
  mutating func append(_ id: UInt64, _ job: Job, _ turn: JobPriority) {
    arrivals += 1
    insert(id, Entry(job: job, turn: turn, number: arrivals))
  }

  /// Gives a job an earlier turn, never a later one; there it counts as having come when it did. One that does not wait
  /// is ignored.
  mutating func raise(_ id: UInt64, to turn: JobPriority) {
    // What takes long does so for everyone.
    guard var entry = entries[id], entry.turn < turn, entry.turn != .later else { return }
    _ = remove(id)
    entry.turn = turn
    insert(id, entry)
  }

  /// Takes the job whose turn it is.
  ///
  /// - Parameter laterToo: Whether that may be one that takes long.
  mutating func popFirst(laterToo: Bool = true) -> (id: UInt64, job: Job, isLater: Bool)? {
    guard let index = lanes.lastIndex(where: { $0.count > 0 }), index > 0 || laterToo else {
      return nil
    }
    return pop(from: index)
  }

  /// Takes the first of those that take long.
  mutating func popLater() -> (id: UInt64, job: Job, isLater: Bool)? {
    lanes[JobPriority.later.index].count > 0 ? pop(from: JobPriority.later.index) : nil
  }

  private mutating func pop(from index: Int) -> (id: UInt64, job: Job, isLater: Bool) {
    while true {
      let id = lanes[index].order[lanes[index].head].id
      lanes[index].head += 1
      if entries[id]?.turn.index == index, let job = remove(id) {
        return (id, job, index == JobPriority.later.index)
      }
    }
  }

  /// Takes a job out of its turn; `nil` if it does not wait.
  mutating func remove(_ id: UInt64) -> Job? {
    guard let entry = entries.removeValue(forKey: id) else { return nil }
    lanes[entry.turn.index].count -= 1
    compact(entry.turn.index)
    return entry.job
  }

  /// Takes those that are meant, in no order.
  mutating func removeAll(where isMeant: (Job) -> Bool) -> [Job] {
    let ids = entries.filter { isMeant($0.value.job) }.map(\.key)
    return ids.compactMap { remove($0) }
  }

  /// Takes all, in their order.
  mutating func removeAll() -> [Job] {
    var jobs: [Job] = []
    while let (_, job, _) = popFirst() { jobs.append(job) }
    return jobs
  }

  private mutating func insert(_ id: UInt64, _ entry: Entry) {
    let index = entry.turn.index
    entries[id] = entry
    lanes[index].count += 1
    var place = lanes[index].order.endIndex
    while place > lanes[index].head, lanes[index].order[place - 1].number > entry.number {
      place -= 1
    }
    lanes[index].order.insert((entry.number, id), at: place)
  }

  /// Forgets holes once they are more than the jobs, so that neither time nor memory grows with those who left. A job
  /// that moved up is a hole where it was: it is never there again.
  private mutating func compact(_ index: Int) {
    guard lanes[index].order.count > 2 * lanes[index].count + 32 else { return }
    let rest = lanes[index].order[lanes[index].head...]
    lanes[index].order = rest.filter { entries[$0.id]?.turn.index == index }
    lanes[index].head = 0
  }
}

extension JobPriority {
  /// Its place among all, from the last turn on.
  fileprivate var index: Int {
    switch self {
    case .later: 0
    case .by(let priority): priority.rank + 1
    case .next: LoadPriority.allCases.count + 1
    }
  }
}
