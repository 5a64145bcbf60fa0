// WaitingList: the jobs that wait for a worker, first come, first served.

/// Jobs in the order in which they are to be done. Adding and taking take constant time; so does leaving, which leaves
/// a hole behind that is passed over later.
struct WaitingList<Job> {
  private var jobs: [UInt64: Job] = [:]
  private var order: [UInt64] = []
  private var head = 0

  /// How many wait.
  var count: Int { jobs.count }

  /// Adds a job behind all others.
  mutating func append(_ id: UInt64, _ job: Job) {
    jobs[id] = job
    order.append(id)
  }

  /// Takes the job whose turn it is.
  mutating func popFirst() -> (id: UInt64, job: Job)? {
    while head < order.count {
      let id = order[head]
      head += 1
      if let job = jobs.removeValue(forKey: id) {
        compact()
        return (id, job)
      }
    }
    compact()
    return nil
  }

  /// Takes a job out of its turn; `nil` if it does not wait.
  mutating func remove(_ id: UInt64) -> Job? {
    guard let job = jobs.removeValue(forKey: id) else { return nil }
    compact()
    return job
  }

  /// Takes all.
  mutating func removeAll() -> [Job] {
    defer { (jobs, order, head) = ([:], [], 0) }
    return order[head...].compactMap { jobs[$0] }
  }

  /// Forgets holes once they are more than the jobs, so that neither time nor memory grows with those who left.
  private mutating func compact() {
    guard order.count > 2 * jobs.count + 32 else { return }
    order = order[head...].filter { jobs[$0] != nil }
    head = 0
  }
}
