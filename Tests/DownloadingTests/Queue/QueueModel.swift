// QueueModel: a simple model of DownloadQueue, for tests.

import Core

@testable import Downloading

/// A naive model of `DownloadQueue` that searches all loads each time.
struct QueueModel {
  static let hosts = 6
  static let share = 2
  static let clients: [LoadClient] =
    [.unlimited, .background] + (1...3).map { .network(.v4($0)) }

  struct Entry {
    let id: Int
    let host: Int
    /// The client whose place it has is the only one of a running load.
    var clients: [LoadClient]
    var priority: LoadPriority
    let deadline: ContinuousClock.Instant
  }

  let limit: Int
  let limitPerHost: Int
  let silentLimit: Int
  let queueLimit: Int
  let order: DownloadOrder
  /// In order of arrival.
  var waiting: [Entry] = []
  var running: [Entry] = []
  var isPaused = false
  var silent: Set<Int> = []
  /// The rates of slow loads.
  var rates: [Int: Int] = [:]

  init(
    limit: Int, limitPerHost: Int, silentLimit: Int, queueLimit: Int, order: DownloadOrder
  ) {
    self.limit = limit
    self.limitPerHost = limitPerHost
    self.silentLimit = silentLimit
    self.queueLimit = queueLimit
    self.order = order
  }

  private var runningPerHost: [Int] {
    var counts = [Int](repeating: 0, count: Self.hosts)
    for entry in running { counts[entry.host] += 1 }
    return counts
  }

  mutating func add(
    _ id: Int, host: Int, clients: [LoadClient], priority: LoadPriority,
    deadline: ContinuousClock.Instant
  ) -> [DownloadQueue.Action] {
    waiting.append(
      Entry(
        id: id, host: host, clients: clients.isEmpty ? [.background] : clients, priority: priority,
        deadline: deadline))
    let actions = startAll()
    guard actions.isEmpty, waiting.count > queueLimit else { return actions }
    waiting.removeLast()
    return [.refuse(id)]
  }

  mutating func silence(_ id: Int) -> [DownloadQueue.Action] {
    if running.contains(where: { $0.id == id }), silent.insert(id).inserted { rates[id] = nil }
    return startAll()
  }

  mutating func slow(_ id: Int, rate: Int) -> [DownloadQueue.Action] {
    for entry in running where entry.id == id && !silent.contains(id) { rates[id] = rate }
    return startAll()
  }

  mutating func recover(_ id: Int) {
    silent.remove(id)
    rates[id] = nil
  }

  mutating func join(_ id: Int, client: LoadClient) -> [DownloadQueue.Action] {
    for index in waiting.indices
    where waiting[index].id == id && !waiting[index].clients.contains(client) {
      waiting[index].clients.append(client)
    }
    return startAll()
  }

  private func isStalled(_ id: Int) -> Bool { silent.contains(id) || rates[id] != nil }

  /// The active loads of each client.
  private var active: [LoadClient: Int] {
    running.filter { !isStalled($0.id) }.reduce(into: [:]) { $0[$1.clients[0], default: 0] += 1 }
  }

  private func share(of client: LoadClient) -> Int {
    switch client {
    case .network: Self.share
    case .unlimited: .max
    case .background: 0
    }
  }

  /// The active loads above the shares of their clients.
  var surplus: Int { active.reduce(0) { $0 + max($1.value - share(of: $1.key), 0) } }

  /// What the running loads leave.
  private struct Room {
    let active: [LoadClient: Int]
    let total: Int
    let surplus: Int
    let perHost: [Int]
    let isFull: Bool
  }

  private var room: Room {
    let active = active
    let isFull =
      running.count >= limit + silentLimit && !running.contains(where: { isStalled($0.id) })
    return Room(
      active: active, total: active.values.reduce(0, +), surplus: surplus, perHost: runningPerHost,
      isFull: isFull)
  }

  /// Returns whether a load of a client may start, in its share or above.
  private func hasPlace(_ entry: Entry, for client: LoadClient, in room: Room) -> Bool {
    guard !room.isFull else { return false }
    let count = room.perHost[entry.host]
    if count >= limitPerHost {
      let ofHost = running.filter { $0.host == entry.host }
      guard count < 2 * limitPerHost, ofHost.contains(where: { silent.contains($0.id) }),
        !ofHost.contains(where: { $0.clients[0] == client })
      else { return false }
    }
    return isAboveShare(client, in: room)
      ? room.total < limit && running.count < limit + silentLimit
      : room.total - room.surplus < limit
  }

  private func isAboveShare(_ client: LoadClient, in room: Room) -> Bool {
    room.active[client] ?? 0 >= share(of: client)
  }

  private func turn(of client: LoadClient, in room: Room) -> Int {
    switch client {
    case .network: room.active[client] ?? 0
    case .unlimited: 0
    case .background: .max
    }
  }

  private mutating func end(_ id: Int) {
    running.removeAll { $0.id == id }
    recover(id)
  }

  mutating func remove(_ id: Int) -> [DownloadQueue.Action] {
    end(id)
    waiting.removeAll { $0.id == id }
    return startAll()
  }

  mutating func raise(_ id: Int, to priority: LoadPriority) {
    for index in waiting.indices where waiting[index].id == id {
      waiting[index].priority = max(waiting[index].priority, priority)
    }
  }

  mutating func expire(now: ContinuousClock.Instant) -> [DownloadQueue.Action] {
    defer { waiting.removeAll { $0.deadline <= now } }
    return waiting.filter { $0.deadline <= now }.map { .expire($0.id) }
  }

  mutating func resume() -> [DownloadQueue.Action] {
    isPaused = false
    return startAll()
  }

  private mutating func startAll() -> [DownloadQueue.Action] {
    var actions: [DownloadQueue.Action] = []
    while !isPaused, let (index, client) = best() {
      if running.count == limit + silentLimit {
        let stalled = running.filter { isStalled($0.id) }
        // In order of start: the first of the slowest, of the client with the most stalled ones.
        func burden(_ entry: Entry) -> Int {
          switch entry.clients[0] {
          case .network: stalled.count { $0.clients == entry.clients }
          case .unlimited: 0
          case .background: .max
          }
        }
        let most = stalled.map(burden).max()
        let slowest = stalled.filter { burden($0) == most }.map(\.id)
          .min { rates[$0] ?? 0 < rates[$1] ?? 0 }
        guard let slowest else { break }
        actions.append(.giveUp(slowest))
        end(slowest)
      }
      var entry = waiting.remove(at: index)
      entry.clients = [client]
      actions.append(.start(entry.id))
      running.append(entry)
    }
    return actions
  }

  /// The waiting load that starts next, and the client whose place it takes.
  private func best() -> (index: Int, client: LoadClient)? {
    let room = room
    // By priority, then turn, then the priority of loads above a share.
    func merit(_ entry: Entry, _ client: LoadClient) -> (Int, Int, Int) {
      let rank = entry.priority.rank
      return (isAboveShare(client, in: room) ? 0 : rank, -turn(of: client, in: room), rank)
    }
    var best: (index: Int, client: LoadClient, merit: (Int, Int, Int))?
    for index in order == .fifo ? Array(waiting.indices) : waiting.indices.reversed() {
      for client in waiting[index].clients where hasPlace(waiting[index], for: client, in: room) {
        let merit = merit(waiting[index], client)
        if let best, best.merit >= merit { continue }
        best = (index, client, merit)
      }
    }
    return best.map { ($0.index, $0.client) }
  }

  /// A violated invariant; `nil` if all hold.
  var fault: String? {
    let room = room
    if running.count > limit + silentLimit || waiting.count > queueLimit { return "over a bound" }
    if room.perHost.contains(where: { $0 > 2 * limitPerHost }) { return "over a host's bound" }
    // What is above the shares of others never keeps a client from its share.
    let waits = waiting.contains { entry in
      entry.clients.contains { hasPlace(entry, for: $0, in: room) }
    }
    if !isPaused, waits { return "one waits who could run" }
    return nil
  }
}
