// DownloadQueue: decides which downloads run, wait or are refused. Has no side effects.

import Model
import Platform

/// Grants slots to loads, limited in total and per host. Waiting loads start by priority, and
/// within one priority by `DownloadOrder`.
///
/// - A load whose host is full is skipped, so a slow host fills only its own slots.
/// - A stalled load, silent or slow, no longer counts against the total limit, up to `silentLimit`
///   loads. Beyond that, the slowest stalled load ends when a waiting load could have its place.
/// - The host of a silent load starts no further load until it responds, unless it was sending to
///   another load when this one became silent, or had just responded to one. A slow load still counts against its host's limit, so
///   a slow host gets no more connections than others.
/// - A host that responded to a load is not blamed when that load becomes silent later, usually
///   after a redirect.
///
/// Starting a load takes time linear in the number of hosts with waiting loads, not in the number
/// of loads: each host has a queue of its own for each priority.
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
    /// End a running load that is stalled: a waiting load gets its place. It is already removed.
    case giveUp(ID)
  }

  /// A waiting load in its host's queue.
  fileprivate struct Entry {
    let id: ID
    /// The load's number in order of arrival.
    let number: Int
  }

  /// Where a load waits.
  private struct Place {
    let host: String
    var rank: Int
    let number: Int
  }

  /// A host with waiting or running loads.
  private struct Host {
    /// The waiting loads by priority rank, in order of arrival.
    var waiting = [Deque<Entry>](repeating: Deque(), count: LoadPriority.allCases.count)
    var running = 0
    /// Running loads that no host has responded to.
    var unanswered = 0
    /// Whether a load was silent and the host has not responded since. Then at least one running
    /// load is unanswered.
    var isSilent = false

    var isIdle: Bool { running == 0 && waiting.allSatisfy(\.isEmpty) }
  }

  /// A running load.
  private struct Run {
    let host: String
    /// The load's number in order of start.
    let number: Int
  }

  private let limit: Int
  private let limitPerHost: Int
  private let silentLimit: Int
  private let queueLimit: Int
  private let queueTimeout: Duration
  private let order: DownloadOrder
  private var hosts: [String: Host] = [:]
  /// The waiting loads.
  private var places: [ID: Place] = [:]
  /// The waiting loads in order of arrival, which is also the order of their deadlines. Loads that
  /// no longer wait leave holes, but the first one waits.
  private var deadlines = Deque<(id: ID, deadline: ContinuousClock.Instant)>()
  private var running: [ID: Run] = [:]
  /// Running loads that are silent.
  private var silent: Set<ID> = []
  /// The rate of each running load that is slow, in KiB/s. None is silent, too.
  private var slow: [ID: Int] = [:]
  /// Running loads that any host has responded to.
  private var answered: Set<ID> = []
  /// The host that responded to a running load last. A silent load has none.
  private var senders: [ID: String] = [:]
  private var arrivals = 0
  private var starts = 0
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
  /// The number of slow running loads.
  var slowCount: Int { slow.count }
  var waitingCount: Int { places.count }
  /// The earliest deadline of a waiting load.
  var nextDeadline: ContinuousClock.Instant? { deadlines.first?.deadline }

  /// Writes the state of `host` into an outlook.
  func describe(_ host: String, in outlook: inout LoadOutlook) {
    outlook.isPaused = isPaused
    outlook.limitPerHost = limitPerHost
    outlook.running = hosts[host]?.running ?? 0
    outlook.waiting = hosts[host]?.waiting.reduce(0) { $0 + $1.count } ?? 0
  }

  /// Adds a load of `host` (and port).
  mutating func add(
    _ id: ID, host: String, priority: LoadPriority, now: ContinuousClock.Instant
  ) -> [Action] {
    if hasPlaces, hosts[host].map(hasPlace) ?? true {
      // Any waiting load waits for another host, because free slots are granted at once.
      let ended = makePlace()
      let started = ended + [start(id, of: host)]
      // The host of a load that ended may have waiting ones.
      return ended.isEmpty ? started : started + startWaiting()
    }
    guard waitingCount < queueLimit else { return [.refuse(id)] }
    arrivals += 1
    places[id] = Place(host: host, rank: priority.rank, number: arrivals)
    hosts[host, default: Host()].waiting[priority.rank].append(Entry(id: id, number: arrivals))
    deadlines.append((id, now + queueTimeout))
    return []
  }

  /// Raises the priority of a waiting load; never lowers it. The load keeps its order of arrival.
  mutating func raise(_ id: ID, to priority: LoadPriority) {
    guard var place = places[id], place.rank < priority.rank else { return }
    takeOut(id, at: place)
    place.rank = priority.rank
    places[id] = place
    let index = hosts[place.host]?.waiting[place.rank].index(of: place.number) ?? 0
    let entry = Entry(id: id, number: place.number)
    hosts[place.host]?.waiting[place.rank].insert(entry, at: index)
  }

  /// Removes a running or waiting load; ignores an unknown one.
  mutating func remove(_ id: ID) -> [Action] {
    guard running[id] != nil else {
      if removeWaiting(id) { tidyDeadlines() }
      return []
    }
    release(id)
    return startWaiting()
  }

  private mutating func release(_ id: ID) {
    guard let host = running.removeValue(forKey: id)?.host else { return }
    hosts[host]?.running -= 1
    silent.remove(id)
    slow[id] = nil
    senders[id] = nil
    if answered.remove(id) == nil { hosts[host]?.unanswered -= 1 }
    forgive(host)
    dropIfIdle(host)
  }

  /// Marks a running load as silent. `isAlive` tells whether its host has responded to another load a moment ago.
  mutating func silence(_ id: ID, isAlive: Bool) -> [Action] {
    guard let host = running[id]?.host, silent.insert(id).inserted else { return [] }
    slow[id] = nil
    senders[id] = nil
    if !answered.contains(id), !isAlive, !isSending(host) { hosts[host]?.isSilent = true }
    return startWaiting()
  }

  /// Whether a host sends to a running load fast enough.
  private func isSending(_ host: String) -> Bool {
    senders.contains { id, sender in sender == host && slow[id] == nil }
  }

  /// Marks a running load as slow; `rate` in KiB/s. A silent load stays silent until it responds.
  mutating func slow(_ id: ID, rate: Int) -> [Action] {
    guard running[id] != nil, !silent.contains(id) else { return [] }
    slow[id] = rate
    return startWaiting()
  }

  /// Records that a running load is no longer slow. The number of loads that count may exceed `limit`
  /// for a while.
  mutating func recover(_ id: ID) { slow[id] = nil }

  /// Records a response of `speaker` to a running load: of its own host or a redirect's. `speaker`
  /// is no longer silent, and the load no longer stalled. The number of loads may exceed `limit` for
  /// a while.
  mutating func answer(_ id: ID, from speaker: String) -> [Action] {
    guard let host = running[id]?.host else { return [] }
    silent.remove(id)
    slow[id] = nil
    senders[id] = speaker
    if answered.insert(id).inserted { hosts[host]?.unanswered -= 1 }
    hosts[speaker]?.isSilent = false
    forgive(host)
    return startWaiting()
  }

  /// Clears a host's silence if no running load waits for its first response. The next load finds
  /// out whether the host responds again.
  private mutating func forgive(_ host: String) {
    if hosts[host]?.unanswered == 0 { hosts[host]?.isSilent = false }
  }

  /// Removes the loads that wait for `host` and returns them in order of arrival. No other load can
  /// start because of it.
  mutating func removeWaiting(for host: String) -> [ID] {
    let removed = hosts[host]?.waiting.flatMap { $0 }.sorted { $0.number < $1.number } ?? []
    for entry in removed { _ = removeWaiting(entry.id) }
    tidyDeadlines()
    return removed.map(\.id)
  }

  /// Refuses loads that have waited too long. A pause does not extend their wait.
  mutating func expire(now: ContinuousClock.Instant) -> [Action] {
    var actions: [Action] = []
    while let (id, deadline) = deadlines.first, deadline <= now {
      _ = removeWaiting(id)
      tidyDeadlines()
      actions.append(.expire(id))
    }
    return actions
  }

  /// Starts no load until `resume`. Running loads continue.
  mutating func pause() { isPaused = true }

  /// Ends a pause.
  mutating func resume() -> [Action] {
    isPaused = false
    return startWaiting()
  }

  /// Whether a load may start, if necessary in the place of a stalled one (`makePlace`).
  private var hasPlaces: Bool {
    !isPaused && running.count - silent.count - slow.count < limit
  }

  /// Ends the slowest stalled load if too many are stalled. Of equally slow loads, the one that began
  /// first ends, so that each has had as much time as possible.
  private mutating func makePlace() -> [Action] {
    guard running.count >= limit + silentLimit else { return [] }
    let paces = silent.map { (id: $0, rate: 0) } + slow.map { (id: $0.key, rate: $0.value) }
    let slowest = paces.min {
      ($0.rate, running[$0.id]?.number ?? 0) < ($1.rate, running[$1.id]?.number ?? 0)
    }
    guard let slowest else { return [] }
    release(slowest.id)
    return [.giveUp(slowest.id)]
  }

  private func hasPlace(_ host: Host) -> Bool { host.running < limitPerHost && !host.isSilent }

  private mutating func startWaiting() -> [Action] {
    var actions: [Action] = []
    while !places.isEmpty, hasPlaces, let (id, host) = next() {
      _ = removeWaiting(id)
      actions += makePlace()
      actions.append(start(id, of: host))
    }
    tidyDeadlines()
    return actions
  }

  /// Returns the waiting load that starts next; `nil` if every host with waiting loads is full or
  /// silent.
  private func next() -> (id: ID, host: String)? {
    var best: (rank: Int, entry: Entry, host: String)?
    for (name, host) in hosts where hasPlace(host) {
      guard let rank = host.waiting.lastIndex(where: { !$0.isEmpty }),
        let entry = order == .fifo ? host.waiting[rank].first : host.waiting[rank].last
      else { continue }
      if let best {
        let isEarlier = entry.number < best.entry.number
        guard rank > best.rank || rank == best.rank && isEarlier == (order == .fifo) else {
          continue
        }
      }
      best = (rank, entry, name)
    }
    return best.map { ($0.entry.id, $0.host) }
  }

  private mutating func start(_ id: ID, of host: String) -> Action {
    starts += 1
    running[id] = Run(host: host, number: starts)
    hosts[host, default: Host()].running += 1
    hosts[host]?.unanswered += 1
    return .start(id)
  }
}

// MARK: - Waiting loads

extension DownloadQueue {
  /// Removes a load from its queue and returns whether it waited. The caller calls `tidyDeadlines`.
  private mutating func removeWaiting(_ id: ID) -> Bool {
    guard let place = places.removeValue(forKey: id) else { return false }
    takeOut(id, at: place)
    dropIfIdle(place.host)
    return true
  }

  private mutating func takeOut(_ id: ID, at place: Place) {
    guard let index = hosts[place.host]?.waiting[place.rank].index(of: place.number) else { return }
    hosts[place.host]?.waiting[place.rank].remove(at: index)
  }

  private mutating func dropIfIdle(_ host: String) {
    if hosts[host]?.isIdle == true { hosts[host] = nil }
  }

  /// Removes the holes at the front of `deadlines`, and all of them when they outnumber the loads.
  private mutating func tidyDeadlines() {
    while let first = deadlines.first, places[first.id] == nil { _ = deadlines.popFirst() }
    guard deadlines.count > 2 * places.count + 32 else { return }
    let places = places
    deadlines.removeAll { places[$0.id] == nil }
  }
}

extension Deque<DownloadQueue.Entry> {
  /// Returns the index of the load with this number, or the one at which it belongs.
  fileprivate func index(of number: Int) -> Int {
    var low = 0
    var high = count
    while low < high {
      let middle = (low + high) / 2
      if self[middle].number < number { low = middle + 1 } else { high = middle }
    }
    return low
  }
}
