// DownloadQueue: which download may run, which waits and which is turned away. It decides and does nothing.

import Model

/// In which order downloads of one priority run (SDWebImageDownloaderExecutionOrder).
public enum DownloadOrder: String, Hashable, Sendable, CaseIterable {
  /// First come, first served.
  case fifo
  /// Who came last goes first: a list scrolled fast shows what is in sight now.
  case lifo
}

/// Grants places to loads: so many at once, so many of one host; of those that wait, all of a higher priority before
/// any of a lower one, and within one priority as `DownloadOrder` says.
///
/// One load waits no longer than the others' hosts make it: a load whose host is full is passed over, so a slow host
/// fills its own places only. And many hosts that say nothing do not fill all places together: a load that has been
/// silent counts among all no more, up to so many, and its host begins no further load before it has answered one. A
/// host that answered a load is not to blame for what that load waits for then: the target of its redirect, as a rule.
/// Choosing among those waiting is `startNext`'s matter alone.
///
/// Scanning and removing cost time in proportion to the queue's length: 1,000 waiting take microseconds, where the
/// transfer that follows takes milliseconds.
struct DownloadQueue {
  typealias ID = Int

  /// What is to be done now, in order.
  enum Action: Hashable {
    /// Begin the transfer; the place is taken until `remove`.
    case start(ID)
    /// Turn away: the queue is full.
    case refuse(ID)
    /// Turn away: it has waited too long.
    case expire(ID)
  }

  private struct Entry {
    let id: ID
    let host: String
    /// Which load it is in order of arrival.
    let number: Int
    let deadline: ContinuousClock.Instant
  }

  private let limit: Int
  private let limitPerHost: Int
  private let silentLimit: Int
  private let queueLimit: Int
  private let queueTimeout: Duration
  private let order: DownloadOrder
  /// For each priority's rank those that wait, in order of arrival, and so of their deadlines.
  private var waiting = [[Entry]](repeating: [], count: LoadPriority.allCases.count)
  private var running: [ID: String] = [:]
  private var runningPerHost: [String: Int] = [:]
  /// Running loads from which nothing has come for long.
  private var silent: Set<ID> = []
  /// Running loads that were answered, by their own host before any other.
  private var answered: Set<ID> = []
  /// Hosts that were silent and have answered nobody since. Each has a running load that was not answered.
  private var silentHosts: Set<String> = []
  private var arrivals = 0
  /// Whether nothing begins (SDWebImageDownloader's `suspended`).
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
  /// Those of the running ones that have been silent for long.
  var silentCount: Int { silent.count }
  var waitingCount: Int { waiting.reduce(0) { $0 + $1.count } }
  /// When `expire` will next have something to say.
  var nextDeadline: ContinuousClock.Instant? { waiting.compactMap(\.first?.deadline).min() }

  /// A load of `host` (and port) arrives.
  mutating func add(
    _ id: ID, host: String, priority: LoadPriority, now: ContinuousClock.Instant
  ) -> [Action] {
    arrivals += 1
    let entry = Entry(id: id, host: host, number: arrivals, deadline: now + queueTimeout)
    if hasPlace(for: host) {
      // Whoever waits, waits for another host: places are given away as soon as they are free.
      return [start(entry)]
    }
    guard waitingCount < queueLimit else { return [.refuse(id)] }
    waiting[priority.rank].append(entry)
    return []
  }

  /// Gives a load that waits a higher priority, never a lower one. It counts as having come when it did.
  mutating func raise(_ id: ID, to priority: LoadPriority) {
    guard let (rank, index) = place(of: id), rank < priority.rank else { return }
    let entry = waiting[rank].remove(at: index)
    let later = waiting[priority.rank].firstIndex { $0.number > entry.number }
    waiting[priority.rank].insert(entry, at: later ?? waiting[priority.rank].endIndex)
  }

  /// A load has ended or was given up, running or waiting; one not known here is ignored.
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

  /// A running load has brought nothing for long.
  mutating func silence(_ id: ID) -> [Action] {
    guard let host = running[id], silent.insert(id).inserted else { return [] }
    if !answered.contains(id) { silentHosts.insert(host) }
    return startWaiting()
  }

  /// A running load is answered by `speaker`, its own host or one that it was redirected to: whoever spoke is as any
  /// other host again. So there may be more loads for a while than `limit` lets begin.
  mutating func answer(_ id: ID, from speaker: String) -> [Action] {
    guard let host = running[id] else { return [] }
    silent.remove(id)
    answered.insert(id)
    silentHosts.remove(speaker)
    forgive(host)
    return startWaiting()
  }

  /// Where no load waits for a host's first word any more, whoever comes next finds out whether it speaks again.
  private mutating func forgive(_ host: String) {
    guard silentHosts.contains(host),
      !running.contains(where: { $0.value == host && !answered.contains($0.key) })
    else { return }
    silentHosts.remove(host)
  }

  /// Takes out whoever waits for `host`, in order of arrival. Nobody else's place depends on them.
  mutating func removeWaiting(for host: String) -> [ID] {
    var removed: [Entry] = []
    for rank in waiting.indices {
      removed += waiting[rank].filter { $0.host == host }
      waiting[rank].removeAll { $0.host == host }
    }
    return removed.sorted { $0.number < $1.number }.map(\.id)
  }

  /// Turns away who has waited too long; a pause lengthens no wait.
  mutating func expire(now: ContinuousClock.Instant) -> [Action] {
    var expired: [Entry] = []
    for rank in waiting.indices {
      let late = waiting[rank].prefix { $0.deadline <= now }
      expired += late
      waiting[rank].removeFirst(late.count)
    }
    return expired.sorted { $0.number < $1.number }.map { .expire($0.id) }
  }

  /// Begins nothing until `resume`: what runs runs on, what arrives waits.
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
