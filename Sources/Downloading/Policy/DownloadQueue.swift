// DownloadQueue: decides which downloads run, wait or are refused. Has no side effects.

import Model

/// Grants slots to loads, limited in total and per host. Waiting loads start by priority, and
/// within one priority by `DownloadOrder`.
///
/// - A load whose host is full is skipped, so a slow host fills only its own slots.
/// - A silent load no longer counts against the total limit, up to `silentLimit` loads. Its host
///   starts no further load until it responds.
/// - A host that responded to a load is not blamed when that load becomes silent later, usually
///   after a redirect.
///
/// Scanning and removing take time linear in the queue's length.
struct DownloadQueue {
  typealias ID = Int

  /// The actions for the caller, in order.
  enum Action: Hashable {
    /// Begin the transfer; it holds its slot until `remove`.
    case start(ID)
    /// Refuse: the queue is full.
    case refuse(ID)
    /// Refuse: the load has waited too long.
    case expire(ID)
  }

  private struct Entry {
    let id: ID
    let host: String
    /// The load's number in order of arrival.
    let number: Int
    let deadline: ContinuousClock.Instant
  }

  private let limit: Int
  private let limitPerHost: Int
  private let silentLimit: Int
  private let queueLimit: Int
  private let queueTimeout: Duration
  private let order: DownloadOrder
  /// The waiting loads by priority rank, in order of arrival, which is also the order of their
  /// deadlines.
  private var waiting = [[Entry]](repeating: [], count: LoadPriority.allCases.count)
  private var running: [ID: String] = [:]
  private var runningPerHost: [String: Int] = [:]
  /// Running loads that are silent.
  private var silent: Set<ID> = []
  /// Running loads that any host has responded to.
  private var answered: Set<ID> = []
  /// Hosts that were silent and have not responded since. Each has an unanswered running load.
  private var silentHosts: Set<String> = []
  private var arrivals = 0
  /// Whether no load starts (SDWebImageDownloader's `suspended`).
  private(set) var isPaused = false

  init(
    limit: Int, limitPerHost: Int, silentLimit: Int, queueLimit: Int, queueTimeout: Duration,
    order: DownloadOrder = .fifo
  ) {
    self.limit = max(limit, 1)
    self.limitPerHost = max(limitPerHost, 1)
    self.silentLimit = max(silentLimit, 0)
    self.queueLimit = max(queueLimit, 0)
    self.queueTimeout = queueTimeout
    self.order = order
  }

  var runningCount: Int { running.count }
  /// The number of silent running loads.
  var silentCount: Int { silent.count }
  var waitingCount: Int { waiting.reduce(0) { $0 + $1.count } }
  /// The earliest deadline of a waiting load.
  var nextDeadline: ContinuousClock.Instant? { waiting.compactMap(\.first?.deadline).min() }

  /// Adds a load of `host` (and port).
  mutating func add(
    _ id: ID, host: String, priority: LoadPriority, now: ContinuousClock.Instant
  ) -> [Action] {
    arrivals += 1
    let entry = Entry(id: id, host: host, number: arrivals, deadline: now + queueTimeout)
    if hasPlace(for: host) {
      // Any waiting load waits for another host, because free slots are granted at once.
      return [start(entry)]
    }
    guard waitingCount < queueLimit else { return [.refuse(id)] }
    waiting[priority.rank].append(entry)
    return []
  }

  /// Raises the priority of a waiting load; never lowers it. The load keeps its order of arrival.
  mutating func raise(_ id: ID, to priority: LoadPriority) {
    guard let (rank, index) = place(of: id), rank < priority.rank else { return }
    let entry = waiting[rank].remove(at: index)
    let later = waiting[priority.rank].firstIndex { $0.number > entry.number }
    waiting[priority.rank].insert(entry, at: later ?? waiting[priority.rank].endIndex)
  }

  /// Removes a running or waiting load; ignores an unknown one.
  mutating func remove(_ id: ID) -> [Action] {
    if let host = running.removeValue(forKey: id) {
      let rest = (runningPerHost[host] ?? 1) - 1
      runningPerHost[host] = rest > 0 ? rest : nil
      silent.remove(id)
      answered.remove(id)
      forgive(host)
      return startWaiting()
    }
    if let (rank, index) = place(of: id) { waiting[rank].remove(at: index) }
    return []
  }

  /// Marks a running load as silent.
  mutating func silence(_ id: ID) -> [Action] {
    guard let host = running[id], silent.insert(id).inserted else { return [] }
    if !answered.contains(id) { silentHosts.insert(host) }
    return startWaiting()
  }

  /// Records a response of `speaker` to a running load: of its own host or a redirect's. `speaker`
  /// is no longer silent. The number of loads may exceed `limit` for a while.
  mutating func answer(_ id: ID, from speaker: String) -> [Action] {
    guard let host = running[id] else { return [] }
    silent.remove(id)
    answered.insert(id)
    silentHosts.remove(speaker)
    forgive(host)
    return startWaiting()
  }

  /// Clears a host's silence if no running load waits for its first response. The next load finds
  /// out whether the host responds again.
  private mutating func forgive(_ host: String) {
    guard silentHosts.contains(host),
      !running.contains(where: { $0.value == host && !answered.contains($0.key) })
    else { return }
    silentHosts.remove(host)
  }

  /// Removes the loads that wait for `host` and returns them in order of arrival. No other load can
  /// start because of it.
  mutating func removeWaiting(for host: String) -> [ID] {
    var removed: [Entry] = []
    for rank in waiting.indices {
      removed += waiting[rank].filter { $0.host == host }
      waiting[rank].removeAll { $0.host == host }
    }
    return removed.sorted { $0.number < $1.number }.map(\.id)
  }

  /// Refuses loads that have waited too long. A pause does not extend their wait.
  mutating func expire(now: ContinuousClock.Instant) -> [Action] {
    var expired: [Entry] = []
    for rank in waiting.indices {
      let late = waiting[rank].prefix { $0.deadline <= now }
      expired += late
      waiting[rank].removeFirst(late.count)
    }
    return expired.sorted { $0.number < $1.number }.map { .expire($0.id) }
  }

  /// Starts no load until `resume`. Running loads continue.
  mutating func pause() { isPaused = true }

  /// Ends a pause.
  mutating func resume() -> [Action] {
    isPaused = false
    return startWaiting()
  }

  private func place(of id: ID) -> (rank: Int, index: Int)? {
    for rank in waiting.indices {
      if let index = waiting[rank].firstIndex(where: { $0.id == id }) { return (rank, index) }
    }
    return nil
  }

  private func hasPlace(for host: String) -> Bool {
    hasPlaces && runningPerHost[host, default: 0] < limitPerHost && !silentHosts.contains(host)
  }

  private var hasPlaces: Bool {
    !isPaused && running.count - silent.count < limit && running.count < limit + silentLimit
  }

  private mutating func startWaiting() -> [Action] {
    var actions: [Action] = []
    while let action = startNext() { actions.append(action) }
    return actions
  }

  private mutating func startNext() -> Action? {
    guard hasPlaces else { return nil }
    for rank in waiting.indices.reversed() {
      let index =
        switch order {
        case .fifo: waiting[rank].firstIndex { hasPlace(for: $0.host) }
        case .lifo: waiting[rank].lastIndex { hasPlace(for: $0.host) }
        }
      if let index { return start(waiting[rank].remove(at: index)) }
    }
    return nil
  }

  private mutating func start(_ entry: Entry) -> Action {
    running[entry.id] = entry.host
    runningPerHost[entry.host, default: 0] += 1
    return .start(entry.id)
  }
}
