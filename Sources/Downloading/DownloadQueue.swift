// DownloadQueue: which download may run, which waits and which is turned away. It decides and does nothing.

/// Grants places to loads: so many at once, so many of one host, first come, first served.
///
/// One load waits no longer than the others' hosts make it: a load whose host is full is passed over, so a slow host
/// fills its own places only. Choosing among those waiting is `nextWaiting`'s matter alone.
///
/// Scanning and removing cost time in proportion to the queue's length: 1,000 waiting take microseconds, where the
/// transfer that follows takes milliseconds.
struct DownloadQueue {
  typealias ID = Int

  /// What is to be done now, in order.
  enum Action: Hashable {
    /// Begin the transfer; the place is taken until `finish`.
    case start(ID)
    /// Turn away: the queue is full.
    case refuse(ID)
    /// Turn away: it has waited too long.
    case expire(ID)
  }

  private struct Entry {
    let id: ID
    let host: String
    let deadline: ContinuousClock.Instant
  }

  private let limit: Int
  private let limitPerHost: Int
  private let queueLimit: Int
  private let queueTimeout: Duration
  /// In order of arrival, and so of their deadlines.
  private var waiting: [Entry] = []
  private var running: [ID: String] = [:]
  private var runningPerHost: [String: Int] = [:]

  init(limit: Int, limitPerHost: Int, queueLimit: Int, queueTimeout: Duration) {
    self.limit = max(limit, 1)
    self.limitPerHost = max(limitPerHost, 1)
    self.queueLimit = max(queueLimit, 0)
    self.queueTimeout = queueTimeout
  }

  var runningCount: Int { running.count }
  var waitingCount: Int { waiting.count }
  /// When `expire` will next have something to say.
  var nextDeadline: ContinuousClock.Instant? { waiting.first?.deadline }

  /// A load of `host` (and port) arrives.
  mutating func add(_ id: ID, host: String, now: ContinuousClock.Instant) -> [Action] {
    let entry = Entry(id: id, host: host, deadline: now + queueTimeout)
    if hasPlace(for: host) {
      // Whoever waits, waits for another host: places are given away as soon as they are free.
      return [start(entry)]
    }
    guard waiting.count < queueLimit else { return [.refuse(id)] }
    waiting.append(entry)
    return []
  }

  /// A load has ended or was given up, running or waiting; one not known here is ignored.
  mutating func remove(_ id: ID) -> [Action] {
    if let host = running.removeValue(forKey: id) {
      let rest = (runningPerHost[host] ?? 1) - 1
      runningPerHost[host] = rest > 0 ? rest : nil
    } else if let index = waiting.firstIndex(where: { $0.id == id }) {
      waiting.remove(at: index)
      return []
    }
    var actions: [Action] = []
    while let index = nextWaiting() { actions.append(start(waiting.remove(at: index))) }
    return actions
  }

  /// Turns away who has waited too long.
  mutating func expire(now: ContinuousClock.Instant) -> [Action] {
    let expired = waiting.prefix { $0.deadline <= now }.map { Action.expire($0.id) }
    waiting.removeFirst(expired.count)
    return expired
  }

  private func hasPlace(for host: String) -> Bool {
    running.count < limit && runningPerHost[host, default: 0] < limitPerHost
  }

  private func nextWaiting() -> Int? {
    running.count < limit ? waiting.firstIndex { hasPlace(for: $0.host) } : nil
  }

  private mutating func start(_ entry: Entry) -> Action {
    running[entry.id] = entry.host
    runningPerHost[entry.host, default: 0] += 1
    return .start(entry.id)
  }
}
