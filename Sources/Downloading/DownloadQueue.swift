// DownloadQueue: decides which downloads run, wait or are refused, without side effects.

import Model
import Platform

/// Grants slots to loads, limited in total, per host and per client. Waiting loads start by priority,
/// within one priority by the clients' turns (`ClientPlaces`), then by `DownloadOrder`.
///
/// - A load whose host is full is skipped, so a slow host fills only its own slots.
/// - A stalled load, silent or slow, no longer counts against the total limit, up to `silentLimit`
///   loads. Beyond that, a stalled load ends when a waiting load could have its place: the slowest one
///   of the client with the most of them.
/// - A client that has its share starts further loads while the total limit has room and no other load
///   waits. These no longer count against the total limit for clients below their shares, up to
///   `silentLimit` loads together with stalled ones. So a client that was alone delays no load of
///   another for another host.
/// - A load for several clients waits for the first of them that has a place.
/// - The host of a silent load starts no further load of the same client until it responds, unless it
///   was sending to another load when this one became silent, or had just responded to one. A client
///   without a load of the host starts one beside silent loads, up to twice the limit of the host:
///   perhaps only the URLs of the first are silent. A slow load still counts against its host's limit.
/// - A host that responded to a load is not blamed when that load becomes silent later, usually
///   after a redirect.
///
/// Starting a load takes time linear in the number of pairs of a host and a client with waiting loads,
/// not in the number of loads (`WaitingLoads`).
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

  /// A host with running loads.
  private struct Host {
    var running = 0
    /// Its running loads by the client whose place they have.
    var clients: [LoadClient: Int] = [:]
    /// Running loads that are silent.
    var silent = 0
    /// Running loads that no host has responded to.
    var unanswered = 0
    /// Whether a load was silent and the host has not responded since. Then at least one running
    /// load is unanswered.
    var isSilent = false
  }

  /// A running load.
  private struct Run {
    let host: String
    /// The client whose place it has.
    let client: LoadClient
    /// The load's number in order of start.
    let number: Int
  }

  /// How many loads run and wait.
  struct Limits {
    let total: Int
    let perHost: Int
    /// Those of one client while others wait.
    let share: Int
    /// Stalled loads that do not count against `total`.
    let silent: Int
    let waiting: Int
    /// How long a load may wait.
    let timeout: Duration
  }

  private var limit = 1
  private var limitPerHost = 1
  private var silentLimit = 0
  private var queueLimit = 0
  private var queueTimeout = Duration.zero
  private var hosts: [String: Host] = [:]
  private var waiting: WaitingLoads
  private var clients: ClientPlaces
  private var running: [ID: Run] = [:]
  /// Running loads that are silent.
  private var silent: Set<ID> = []
  /// The rate of each running load that is slow, in KiB/s. None is silent, too.
  private var slow: [ID: Int] = [:]
  /// Running loads that any host has responded to.
  private var answered: Set<ID> = []
  /// The host that responded to a running load last. A silent load has none.
  private var senders: [ID: String] = [:]
  private var starts = 0
  /// Whether no load starts (SDWebImageDownloader's `suspended`).
  private(set) var isPaused = false

  init(_ limits: Limits, order: DownloadOrder = .fifo) {
    waiting = WaitingLoads(order: order)
    clients = ClientPlaces(share: limits.share)
    _ = set(limits, order: order)
  }

  /// Changes the limits, and the order of waiting loads. Running and waiting loads beyond the limits stay.
  mutating func set(_ limits: Limits, order: DownloadOrder) -> [Action] {
    waiting.order = order
    limit = max(limits.total, 1)
    limitPerHost = max(limits.perHost, 1)
    silentLimit = max(limits.silent, 0)
    queueLimit = max(limits.waiting, 0)
    queueTimeout = limits.timeout
    clients.setShare(limits.share)
    return startWaiting()
  }

  var runningCount: Int { running.count }
  /// The number of silent running loads.
  var silentCount: Int { silent.count }
  /// The number of slow running loads.
  var slowCount: Int { slow.count }
  var waitingCount: Int { waiting.count }
  /// The number of running loads above the shares of their clients, without stalled ones.
  var surplusCount: Int { clients.surplus }
  /// The earliest deadline of a waiting load.
  var nextDeadline: ContinuousClock.Instant? { waiting.firstDeadline?.deadline }

  /// Writes the state of `host` into an outlook.
  func describe(_ host: String, in outlook: inout LoadOutlook) {
    outlook.isPaused = isPaused
    outlook.limitPerHost = limitPerHost
    outlook.running = hosts[host]?.running ?? 0
    outlook.waiting = waiting.count(of: host)
  }

  /// Adds a load of `host` (and port) for `clients`; without any, it works in the background.
  mutating func add(
    _ id: ID, host: String, clients: [LoadClient] = [.unlimited], priority: LoadPriority,
    now: ContinuousClock.Instant
  ) -> [Action] {
    waiting.add(
      id, host: host, clients: clients.isEmpty ? [.background] : clients, priority: priority,
      deadline: now + queueTimeout)
    // No other waiting load can start, because free slots are granted at once.
    let actions = startWaiting()
    guard waitingCount > queueLimit else { return actions }
    waiting.remove(id)
    return actions + [.refuse(id)]
  }

  /// Raises the priority of a waiting load; never lowers it. The load keeps its order of arrival.
  mutating func raise(_ id: ID, to priority: LoadPriority) { waiting.raise(id, to: priority) }

  /// Adds a client that a waiting load is for. A running load keeps the place that it has.
  mutating func join(_ id: ID, client: LoadClient) -> [Action] {
    waiting.join(id, client: client) ? startWaiting() : []
  }

  /// Removes a running or waiting load; ignores an unknown one.
  mutating func remove(_ id: ID) -> [Action] {
    guard running[id] != nil else {
      waiting.remove(id)
      return []
    }
    release(id)
    return startWaiting()
  }

  private mutating func release(_ id: ID) {
    guard let run = running.removeValue(forKey: id) else { return }
    let host = run.host
    hosts[host]?.running -= 1
    if silent.contains(id) { hosts[host]?.silent -= 1 }
    let others = (hosts[host]?.clients[run.client] ?? 1) - 1
    hosts[host]?.clients[run.client] = others > 0 ? others : nil
    let isStalled = silent.remove(id) != nil || slow.removeValue(forKey: id) != nil
    clients.end(run.client, isStalled: isStalled)
    senders[id] = nil
    if answered.remove(id) == nil { hosts[host]?.unanswered -= 1 }
    forgive(host)
    if hosts[host]?.running == 0 { hosts[host] = nil }
  }

  /// Marks a running load as silent. `isAlive` tells whether its host has responded to another load a moment ago.
  mutating func silence(_ id: ID, isAlive: Bool) -> [Action] {
    guard let run = running[id], silent.insert(id).inserted else { return [] }
    let host = run.host
    hosts[host]?.silent += 1
    if slow.removeValue(forKey: id) == nil { clients.stall(run.client) }
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
    guard let client = running[id]?.client, !silent.contains(id) else { return [] }
    if slow.updateValue(rate, forKey: id) == nil { clients.stall(client) }
    return startWaiting()
  }

  /// Records that a running load is no longer slow. The number of loads that count may exceed `limit`
  /// for a while.
  mutating func recover(_ id: ID) {
    guard let client = running[id]?.client, slow.removeValue(forKey: id) != nil else { return }
    clients.recover(client)
  }

  /// Records a response of `speaker` to a running load: of its own host or a redirect's. `speaker`
  /// is no longer silent, and the load no longer stalled. The number of loads may exceed `limit` for
  /// a while.
  mutating func answer(_ id: ID, from speaker: String) -> [Action] {
    guard let run = running[id] else { return [] }
    let host = run.host
    if silent.contains(id) { hosts[host]?.silent -= 1 }
    if silent.remove(id) != nil || slow.removeValue(forKey: id) != nil {
      clients.recover(run.client)
    }
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

  /// Refuses loads that have waited too long. A pause does not extend their wait.
  mutating func expire(now: ContinuousClock.Instant) -> [Action] {
    var actions: [Action] = []
    while let (id, deadline) = waiting.firstDeadline, deadline <= now {
      waiting.remove(id)
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

  /// Running loads that are not stalled.
  private var active: Int { running.count - silent.count - slow.count }

  /// Ends a stalled load if too many are running: of the client with the most stalled ones the
  /// slowest. Of equally slow loads, the one that began first ends, so that each has had as much time as
  /// possible.
  private mutating func makePlace() -> [Action] {
    guard running.count >= limit + silentLimit else { return [] }
    let paces = silent.map { (id: $0, rate: 0) } + slow.map { (id: $0.key, rate: $0.value) }
    let first = paces.min { order(of: $0.id, rate: $0.rate) < order(of: $1.id, rate: $1.rate) }
    guard let first else { return [] }
    release(first.id)
    return [.giveUp(first.id)]
  }

  /// Orders stalled loads: the lowest ends first.
  private func order(of id: ID, rate: Int) -> (Int, Int, Int) {
    guard let run = running[id] else { return (.max, .max, .max) }
    return (-clients.burden(of: run.client), rate, run.number)
  }

  private mutating func startWaiting() -> [Action] {
    var actions: [Action] = []
    while let (id, host, client) = next() {
      waiting.remove(id)
      actions += makePlace()
      actions.append(start(id, of: host, for: client))
    }
    return actions
  }

  /// Returns the waiting load that starts next, if necessary in the place of a stalled one
  /// (`makePlace`); `nil` if none may start.
  private func next() -> (id: ID, host: String, client: LoadClient)? {
    let hasRoom = running.count < limit + silentLimit || running.count > active
    guard !isPaused, !waiting.isEmpty, hasRoom, active - clients.surplus < limit else { return nil }
    return waiting.next { lane in
      guard hasPlace(hosts[lane.host], for: lane.client) else { return nil }
      let isAboveShare = !clients.isWithinShare(lane.client)
      guard active - (isAboveShare ? 0 : clients.surplus) < limit else { return nil }
      // No stalled load ends for one above a share.
      guard !isAboveShare || running.count < limit + silentLimit else { return nil }
      return WaitingLoads.Standing(
        isAboveShare: isAboveShare, turn: clients.turn(of: lane.client))
    }
  }

  /// Whether a host may have a further load, which a client has a place for.
  private func hasPlace(_ host: Host?, for client: LoadClient) -> Bool {
    guard let host, host.isSilent || host.running >= limitPerHost else { return true }
    return host.silent > 0 && host.clients[client] == nil && host.running < 2 * limitPerHost
  }

  private mutating func start(_ id: ID, of host: String, for client: LoadClient) -> Action {
    starts += 1
    running[id] = Run(host: host, client: client, number: starts)
    clients.start(client)
    hosts[host, default: Host()].running += 1
    hosts[host]?.unanswered += 1
    hosts[host]?.clients[client, default: 0] += 1
    return .start(id)
  }
}

/// The waiting loads. Without side effects.
///
/// A load waits in one lane for each client that it is for. It leaves all of them together.
struct WaitingLoads {
  typealias ID = DownloadQueue.ID

  /// The loads of one client for one host.
  struct Lane: Hashable {
    let host: String
    let client: LoadClient
  }

  /// How the loads of a lane compare with those of others.
  struct Standing {
    /// Whether its client has its share already. Its loads then compare as of the lowest priority.
    let isAboveShare: Bool
    /// The client's turn within one priority; the lowest is the first.
    let turn: Int
  }

  /// A load in a lane.
  fileprivate struct Entry {
    let id: ID
    /// The load's number in order of arrival.
    let number: Int
    /// The client's number among those of the load.
    let position: Int
  }

  private struct Place {
    let host: String
    var clients: [LoadClient]
    var rank: Int
    let number: Int
  }

  private typealias Order = (Int, Int, Int, Int, Int)

  /// The maximum number of clients of a load. Further ones change little, and each costs time at every start.
  static let maximumClients = 16

  /// That of loads of one client and one priority.
  var order: DownloadOrder
  /// The loads of each lane by priority rank, in order of arrival. No lane is empty.
  private var lanes: [Lane: [Deque<Entry>]] = [:]
  private var places: [ID: Place] = [:]
  /// The number of loads of each host.
  private var counts: [String: Int] = [:]
  /// The loads in order of arrival, which is also the order of their deadlines. Loads that no longer
  /// wait leave holes, but the first one waits.
  private var deadlines = Deque<(id: ID, deadline: ContinuousClock.Instant)>()
  private var arrivals = 0

  /// Creates an empty queue.
  init(order: DownloadOrder) { self.order = order }

  /// The number of loads.
  var count: Int { places.count }
  var isEmpty: Bool { places.isEmpty }
  /// The load with the earliest deadline.
  var firstDeadline: (id: ID, deadline: ContinuousClock.Instant)? { deadlines.first }

  /// Returns the number of loads of a host.
  func count(of host: String) -> Int { counts[host] ?? 0 }

  /// Adds a load for its clients, at least one.
  mutating func add(
    _ id: ID, host: String, clients: [LoadClient], priority: LoadPriority,
    deadline: ContinuousClock.Instant
  ) {
    arrivals += 1
    places[id] = Place(host: host, clients: [], rank: priority.rank, number: arrivals)
    counts[host, default: 0] += 1
    deadlines.append((id, deadline))
    for client in clients { join(id, client: client) }
  }

  /// Adds a client that a load is for, up to `maximumClients`. Returns whether it is a new one; ignores an unknown load.
  @discardableResult mutating func join(_ id: ID, client: LoadClient) -> Bool {
    guard let place = places[id], place.clients.count < Self.maximumClients,
      !place.clients.contains(client)
    else { return false }
    let entry = Entry(id: id, number: place.number, position: place.clients.count)
    places[id]?.clients.append(client)
    insert(entry, into: Lane(host: place.host, client: client), rank: place.rank)
    return true
  }

  /// Raises the priority of a load; never lowers it. The load keeps its order of arrival.
  mutating func raise(_ id: ID, to priority: LoadPriority) {
    guard let place = places[id], place.rank < priority.rank else { return }
    places[id]?.rank = priority.rank
    for (position, client) in place.clients.enumerated() {
      let lane = Lane(host: place.host, client: client)
      takeOut(place, from: lane)
      let entry = Entry(id: id, number: place.number, position: position)
      insert(entry, into: lane, rank: priority.rank)
    }
  }

  /// Removes a load and returns whether it waited.
  @discardableResult mutating func remove(_ id: ID) -> Bool {
    guard let place = places.removeValue(forKey: id) else { return false }
    for client in place.clients { takeOut(place, from: Lane(host: place.host, client: client)) }
    let count = counts[place.host] ?? 0
    counts[place.host] = count > 1 ? count - 1 : nil
    tidyDeadlines()
    return true
  }

  /// Returns the load that starts next, and the client whose place it takes. Takes time linear in the number of lanes.
  ///
  /// - Parameter standing: tells how a lane compares; `nil` if none of its loads may start.
  func next(standing: (Lane) -> Standing?) -> (id: ID, host: String, client: LoadClient)? {
    var best: (order: Order, id: ID, lane: Lane)?
    for (lane, loads) in lanes {
      guard let standing = standing(lane),
        let rank = loads.lastIndex(where: { !$0.isEmpty }),
        let entry = order == .fifo ? loads[rank].first : loads[rank].last
      else { continue }
      let order: Order = (
        standing.isAboveShare ? LoadPriority.low.rank : rank, -standing.turn, rank,
        order == .fifo ? -entry.number : entry.number, -entry.position
      )
      if best.map({ $0.order < order }) ?? true { best = (order, entry.id, lane) }
    }
    return best.map { ($0.id, $0.lane.host, $0.lane.client) }
  }

  private mutating func insert(_ entry: Entry, into lane: Lane, rank: Int) {
    let none = [Deque<Entry>](repeating: Deque(), count: LoadPriority.allCases.count)
    let index = lanes[lane]?[rank].index(of: entry.number) ?? 0
    lanes[lane, default: none][rank].insert(entry, at: index)
  }

  private mutating func takeOut(_ place: Place, from lane: Lane) {
    guard let index = lanes[lane]?[place.rank].index(of: place.number) else { return }
    lanes[lane]?[place.rank].remove(at: index)
    if lanes[lane]?.allSatisfy(\.isEmpty) == true { lanes[lane] = nil }
  }

  /// Removes the holes at the front of `deadlines`, and all of them when they outnumber the loads.
  private mutating func tidyDeadlines() {
    while let first = deadlines.first, places[first.id] == nil { _ = deadlines.popFirst() }
    guard deadlines.count > 2 * places.count + 32 else { return }
    let places = places
    deadlines.removeAll { places[$0.id] == nil }
  }
}

extension Deque<WaitingLoads.Entry> {
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
