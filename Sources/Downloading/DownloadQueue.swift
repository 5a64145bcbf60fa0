// DownloadQueue: decides which downloads run, wait or are refused, without side effects.

import Core

/// Grants slots to loads, limited in total, per host and per client. Waiting loads start by
/// priority, within one priority by the clients' turns (`ClientPlaces`), then by `DownloadOrder`.
///
/// - A load whose host is full is skipped, so a slow host fills only its own slots.
/// - A stalled load, silent or slow, no longer counts against the total limit, up to `silentLimit`
///   loads. Beyond that, a stalled load ends when a waiting load could have its place: the slowest
///   one of the client with the most of them.
/// - A client that has its share starts further loads while the total limit has room and no other
///   load waits. These no longer count against the total limit for clients below their shares, up
///   to `silentLimit` loads together with stalled ones. So a client that was alone delays no load
///   of another for another host.
/// - A load for several clients waits for the first of them that has a place.
/// - A stalled load still counts against its host's limit. A client without a load of the host
///   starts one beside silent loads, up to twice that limit: perhaps only the URLs of the first are
///   silent.
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
  }

  /// A running load.
  private struct Run {
    let host: String
    /// The client whose place it has.
    let client: LoadClient
    /// The load's number in order of start.
    let number: Int
  }

  /// A load that waits.
  struct Waiting {
    let id: ID
    let host: String
    /// The clients that it is for, at least one.
    var clients: [LoadClient]
    var priority: LoadPriority
    let deadline: ContinuousClock.Instant
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

  /// The maximum number of clients of a load. Further ones change little, and each costs time at
  /// every start.
  static let maximumClients = 16

  private var limits: Limits
  private var hosts: [String: Host] = [:]
  private var order: DownloadOrder
  /// In order of arrival, which is also the order of their deadlines.
  private(set) var waiting: [Waiting] = []
  private var clients: ClientPlaces
  private var running: [ID: Run] = [:]
  /// Running loads that are silent.
  private var silent: Set<ID> = []
  /// The rate of each running load that is slow, in KiB/s. None is silent, too.
  private var slow: [ID: Int] = [:]
  private var starts = 0
  /// Whether no load starts (SDWebImageDownloader's `suspended`).
  private(set) var isPaused = false

  init(_ limits: Limits, order: DownloadOrder = .fifo) {
    self.order = order
    self.limits = limits
    clients = ClientPlaces(share: limits.share)
  }

  /// Changes the limits, and the order of waiting loads. Running and waiting loads beyond the
  /// limits stay.
  mutating func set(_ limits: Limits, order: DownloadOrder) -> [Action] {
    self.order = order
    self.limits = limits
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
  var nextDeadline: ContinuousClock.Instant? { waiting.first?.deadline }

  /// Writes the state of `host` into an outlook.
  func describe(_ host: String, in outlook: inout LoadOutlook) {
    outlook.isPaused = isPaused
    outlook.limitPerHost = limits.perHost
    outlook.running = hosts[host]?.running ?? 0
    outlook.waiting = waiting.count { $0.host == host }
  }

  /// Adds a load of `host` (and port) for `clients`; without any, it works in the background.
  mutating func add(
    _ id: ID, host: String, clients: [LoadClient] = [.unlimited], priority: LoadPriority,
    now: ContinuousClock.Instant
  ) -> [Action] {
    let clients = clients.isEmpty ? [.background] : Array(clients.prefix(Self.maximumClients))
    waiting.append(
      Waiting(
        id: id, host: host, clients: clients, priority: priority, deadline: now + limits.timeout))
    // No other waiting load can start, because free slots are granted at once.
    let actions = startWaiting()
    guard waiting.count > limits.waiting, let index = index(of: id) else { return actions }
    waiting.remove(at: index)
    return actions + [.refuse(id)]
  }

  /// Raises the priority of a waiting load; never lowers it. The load keeps its order of arrival.
  mutating func raise(_ id: ID, to priority: LoadPriority) {
    if let index = index(of: id) {
      waiting[index].priority = max(waiting[index].priority, priority)
    }
  }

  /// Adds a client that a waiting load is for. A running load keeps the place that it has.
  mutating func join(_ id: ID, client: LoadClient) -> [Action] {
    guard let index = index(of: id), waiting[index].clients.count < Self.maximumClients,
      !waiting[index].clients.contains(client)
    else { return [] }
    waiting[index].clients.append(client)
    return startWaiting()
  }

  private func index(of id: ID) -> Int? { waiting.firstIndex { $0.id == id } }

  /// Removes a running or waiting load; ignores an unknown one.
  mutating func remove(_ id: ID) -> [Action] {
    guard running[id] != nil else {
      if let index = index(of: id) { waiting.remove(at: index) }
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
    if hosts[host]?.running == 0 { hosts[host] = nil }
  }

  /// Marks a running load as silent.
  mutating func silence(_ id: ID) -> [Action] {
    guard let run = running[id], silent.insert(id).inserted else { return [] }
    hosts[run.host]?.silent += 1
    if slow.removeValue(forKey: id) == nil { clients.stall(run.client) }
    return startWaiting()
  }

  /// Marks a running load as slow; `rate` in KiB/s. A silent load stays silent until it recovers.
  mutating func slow(_ id: ID, rate: Int) -> [Action] {
    guard let client = running[id]?.client, !silent.contains(id) else { return [] }
    if slow.updateValue(rate, forKey: id) == nil { clients.stall(client) }
    return startWaiting()
  }

  /// Records that a running load is no longer stalled. The number of loads that count may exceed
  /// `limit` for a while.
  mutating func recover(_ id: ID) {
    guard let run = running[id] else { return }
    if silent.remove(id) != nil {
      hosts[run.host]?.silent -= 1
    } else if slow.removeValue(forKey: id) == nil {
      return
    }
    clients.recover(run.client)
  }

  /// Refuses loads that have waited too long. A pause does not extend their wait.
  mutating func expire(now: ContinuousClock.Instant) -> [Action] {
    let late = waiting.filter { $0.deadline <= now }
    if !late.isEmpty { waiting.removeAll { $0.deadline <= now } }
    return late.map { .expire($0.id) }
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
  /// slowest. Of equally slow loads, the one that began first ends, so that each has had as much
  /// time as possible.
  private mutating func makePlace() -> [Action] {
    guard running.count >= limits.total + limits.silent else { return [] }
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
    while let (index, client) = next() {
      let load = waiting.remove(at: index)
      actions += makePlace()
      actions.append(start(load.id, of: load.host, for: client))
    }
    return actions
  }

  /// Returns the waiting load that starts next, if necessary in the place of a stalled one
  /// (`makePlace`), and the client whose place it takes; `nil` if none may start.
  private func next() -> (index: Int, client: LoadClient)? {
    let hasRoom = running.count < limits.total + limits.silent || running.count > active
    guard !isPaused, !waiting.isEmpty, hasRoom, active - clients.surplus < limits.total else {
      return nil
    }
    var best: (merit: (Int, Int, Int, Int, Int), index: Int, client: LoadClient)?
    for (index, load) in waiting.enumerated() {
      let rank = load.priority.rank
      let host = hosts[load.host]
      for (position, client) in load.clients.enumerated() {
        guard hasPlace(host, for: client) else { continue }
        let isAboveShare = !clients.isWithinShare(client)
        guard active - (isAboveShare ? 0 : clients.surplus) < limits.total else { continue }
        // No stalled load ends for one above a share.
        guard !isAboveShare || running.count < limits.total + limits.silent else { continue }
        let merit = (
          // Loads above a share compare as of the lowest priority.
          isAboveShare ? LoadPriority.low.rank : rank, -clients.turn(of: client), rank,
          order == .fifo ? -index : index, -position
        )
        if best.map({ $0.merit < merit }) ?? true { best = (merit, index, client) }
      }
    }
    return best.map { ($0.index, $0.client) }
  }

  /// Whether a host may have a further load, which a client has a place for.
  private func hasPlace(_ host: Host?, for client: LoadClient) -> Bool {
    guard let host, host.running >= limits.perHost else { return true }
    return host.silent > 0 && host.clients[client] == nil && host.running < 2 * limits.perHost
  }

  private mutating func start(_ id: ID, of host: String, for client: LoadClient) -> Action {
    starts += 1
    running[id] = Run(host: host, client: client, number: starts)
    clients.start(client)
    hosts[host, default: Host()].running += 1
    hosts[host]?.clients[client, default: 0] += 1
    return .start(id)
  }
}
