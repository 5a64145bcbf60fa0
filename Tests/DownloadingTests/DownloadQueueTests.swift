// Tests of DownloadQueue: no sockets, no clocks.

import Model
import TestSupport
import Testing

@testable import Downloading

struct DownloadQueueTests {
  private let start = ContinuousClock.now

  private func makeQueue(
    limit: Int = 3, perHost: Int = 2, silent: Int = 4, waiting: Int = 10,
    order: DownloadOrder = .fifo
  ) -> DownloadQueue {
    DownloadQueue(
      limit: limit, limitPerHost: perHost, silentLimit: silent, queueLimit: waiting,
      queueTimeout: .seconds(15),
      order: order)
  }

  /// The loads in the order in which they get the one place.
  private func drain(_ queue: inout DownloadQueue, running: Int) -> [Int] {
    var order = [running]
    while let last = order.last, case .start(let next)? = queue.remove(last).first {
      order.append(next)
    }
    return Array(order.dropFirst())
  }

  @Test func `loads start at once while there are places`() {
    var queue = makeQueue()
    #expect(queue.add(1, host: "a", priority: .normal, now: start) == [.start(1)])
    #expect(queue.add(2, host: "a", priority: .normal, now: start) == [.start(2)])
    #expect(queue.add(3, host: "b", priority: .normal, now: start) == [.start(3)])
    #expect(queue.runningCount == 3)
    #expect(queue.waitingCount == 0)
  }

  @Test func `a host with all its places taken keeps nobody else waiting`() {
    // Given
    var queue = makeQueue()
    _ = queue.add(1, host: "slow", priority: .normal, now: start)
    _ = queue.add(2, host: "slow", priority: .normal, now: start)
    // When
    #expect(queue.add(3, host: "slow", priority: .normal, now: start) == [])
    // Then
    #expect(queue.add(4, host: "other", priority: .normal, now: start) == [.start(4)])
  }

  @Test func `first come, first served, passing over hosts that are full`() {
    // Given: all three places taken, a b a b waiting
    var queue = makeQueue(limit: 3, perHost: 2)
    for (id, host) in [(1, "a"), (2, "a"), (3, "b"), (4, "a"), (5, "b"), (6, "a"), (7, "b")] {
      _ = queue.add(id, host: host, priority: .normal, now: start)
    }
    #expect(queue.waitingCount == 4)
    // Then
    #expect(queue.remove(3) == [.start(5)])
    #expect(queue.remove(5) == [.start(7)])
    #expect(queue.remove(1) == [.start(4)])
    #expect(queue.remove(7) == [])
    #expect(queue.remove(2) == [.start(6)])
  }

  @Test func `a full queue refuses, and one that is left lets the next in`() {
    var queue = makeQueue(limit: 1, waiting: 1)
    _ = queue.add(1, host: "a", priority: .normal, now: start)
    #expect(queue.add(2, host: "a", priority: .normal, now: start) == [])
    #expect(queue.add(3, host: "b", priority: .normal, now: start) == [.refuse(3)])
    // When: the waiting one is cancelled
    #expect(queue.remove(2) == [])
    // Then
    #expect(queue.add(4, host: "b", priority: .normal, now: start) == [])
    #expect(queue.remove(1) == [.start(4)])
  }

  @Test func `who has waited too long is turned away, in order`() {
    // Given
    var queue = makeQueue(limit: 1)
    _ = queue.add(1, host: "a", priority: .normal, now: start)
    _ = queue.add(2, host: "a", priority: .normal, now: start)
    _ = queue.add(3, host: "a", priority: .normal, now: start + .seconds(1))
    #expect(queue.nextDeadline == start + .seconds(15))
    // Then
    #expect(queue.expire(now: start + .seconds(14)) == [])
    #expect(queue.expire(now: start + .seconds(15)) == [.expire(2)])
    #expect(queue.nextDeadline == start + .seconds(16))
    #expect(queue.remove(1) == [.start(3)])
    #expect(queue.expire(now: start + .seconds(99)) == [])
    #expect(queue.nextDeadline == nil)
  }

  @Test func `a load not known is ignored`() {
    var queue = makeQueue(limit: 1)
    _ = queue.add(1, host: "a", priority: .normal, now: start)
    #expect(queue.remove(99) == [])
    #expect(queue.add(2, host: "a", priority: .normal, now: start) == [])
    #expect(queue.remove(1) == [.start(2)])
    #expect(queue.remove(1) == [])
    #expect(queue.runningCount == 1)
  }

  @Test(arguments: [(DownloadOrder.fifo, [3, 6, 4, 7, 2, 5]), (.lifo, [6, 3, 7, 4, 5, 2])])
  func `all of a higher priority go before any of a lower one`(
    _ order: DownloadOrder, _ expected: [Int]
  ) {
    var queue = makeQueue(limit: 1, order: order)
    let loads: [(Int, LoadPriority)] = [
      (1, .normal), (2, .low), (3, .high), (4, .normal), (5, .low), (6, .high), (7, .normal),
    ]
    for (id, priority) in loads { _ = queue.add(id, host: "a", priority: priority, now: start) }
    #expect(drain(&queue, running: 1) == expected)
  }

  @Test func `last in, first out passes over hosts that are full, too`() {
    // Given
    var queue = makeQueue(limit: 2, perHost: 1, order: .lifo)
    for (id, host) in [(1, "a"), (2, "b"), (3, "a"), (4, "b"), (5, "a")] {
      _ = queue.add(id, host: host, priority: .normal, now: start)
    }
    // Then
    #expect(queue.remove(2) == [.start(4)])
    #expect(queue.remove(1) == [.start(5)])
    #expect(queue.remove(4) == [])
    #expect(queue.remove(5) == [.start(3)])
  }

  @Test func `a waiting load is raised, never lowered, and counts as having come when it did`() {
    // Given
    var queue = makeQueue(limit: 1)
    let loads: [(Int, LoadPriority)] = [
      (1, .normal), (2, .low), (3, .normal), (4, .high), (5, .low), (6, .normal),
    ]
    for (id, priority) in loads { _ = queue.add(id, host: "a", priority: priority, now: start) }
    // When
    queue.raise(2, to: .high)
    queue.raise(5, to: .normal)
    queue.raise(3, to: .low)
    queue.raise(1, to: .high)
    queue.raise(99, to: .high)
    // Then
    #expect(queue.waitingCount == 5)
    #expect(drain(&queue, running: 1) == [2, 4, 3, 5, 6])
  }

  @Test func `a raised load is turned away when its own time is over`() {
    var queue = makeQueue(limit: 1)
    _ = queue.add(1, host: "a", priority: .normal, now: start)
    for id in 2...4 {
      _ = queue.add(id, host: "a", priority: .low, now: start + .seconds(id))
    }
    queue.raise(3, to: .high)
    #expect(queue.nextDeadline == start + .seconds(17))
    #expect(queue.expire(now: start + .seconds(18)) == [.expire(2), .expire(3)])
    #expect(queue.nextDeadline == start + .seconds(19))
  }

  @Test func `while paused nothing begins, and everything after`() {
    // Given
    var queue = makeQueue(limit: 2, perHost: 2)
    _ = queue.add(1, host: "a", priority: .normal, now: start)
    _ = queue.add(2, host: "a", priority: .normal, now: start)
    _ = queue.add(3, host: "a", priority: .normal, now: start)
    // When
    queue.pause()
    // Then: a place that is freed stays free, and so it is for those who come
    #expect(queue.remove(1) == [])
    #expect(queue.add(4, host: "b", priority: .high, now: start + .seconds(5)) == [])
    #expect(queue.runningCount == 1)
    #expect(queue.expire(now: start + .seconds(15)) == [.expire(3)])
    #expect(queue.isPaused)
    #expect(queue.resume() == [.start(4)])
    #expect(!queue.isPaused)
  }

  @Test func `those who wait for one host can be taken out, of every priority`() {
    var queue = makeQueue(limit: 1)
    let loads: [(Int, String, LoadPriority)] = [
      (1, "a", .normal), (2, "a", .high), (3, "b", .normal), (4, "a", .low), (5, "a", .normal),
    ]
    for (id, host, priority) in loads {
      _ = queue.add(id, host: host, priority: priority, now: start)
    }
    #expect(queue.removeWaiting(for: "a") == [2, 4, 5])
    #expect(queue.removeWaiting(for: "a") == [])
    #expect(queue.remove(1) == [.start(3)])
  }

  @Test func `hosts that say nothing leave their places to others`() {
    var queue = makeQueue(limit: 2, silent: 2)
    for id in 1...2 { _ = queue.add(id, host: "dead\(id)", priority: .normal, now: start) }
    for id in 3...5 {
      #expect(queue.add(id, host: "live", priority: .normal, now: start) == [])
    }
    #expect(queue.silence(1) == [.start(3)])
    #expect(queue.silence(1) == [], "a second time says nothing new")
    #expect(queue.silence(2) == [.start(4)])
    // There are no more than so many silent ones beside the others.
    #expect(queue.runningCount == 4)
    // Ending frees a silent one's place, too, for as many as may run in all.
    #expect(queue.remove(1) == [])
    #expect(queue.remove(3) == [.start(5)])
  }

  @Test func `a silent host begins nothing more until it has answered`() {
    var queue = makeQueue(limit: 9, perHost: 3)
    _ = queue.add(1, host: "slow", priority: .normal, now: start)
    _ = queue.silence(1)
    #expect(queue.add(2, host: "slow", priority: .high, now: start) == [])
    #expect(queue.add(3, host: "other", priority: .low, now: start) == [.start(3)])
    #expect(queue.answer(1) == [.start(2)])
    #expect(queue.add(4, host: "slow", priority: .normal, now: start) == [.start(4)])
    // And when all of its loads ended without an answer, the next finds out.
    for id in [1, 2, 4] { _ = queue.silence(id) }
    #expect(queue.add(5, host: "slow", priority: .normal, now: start) == [])
    #expect(queue.remove(1) == [] && queue.remove(2) == [])
    #expect(queue.remove(4) == [.start(5)])
  }

  @Test(arguments: DownloadOrder.allCases)
  func `a random schedule of 100,000 steps goes as a simple model of it`(_ order: DownloadOrder) {
    var random = SeededGenerator(seed: 20_261_121)
    var queue = makeQueue(limit: 8, perHost: 3, waiting: 20, order: order)
    var model = QueueModel(
      limit: 8, limitPerHost: 3, silentLimit: 4, queueLimit: 20, order: order)
    var now = start
    var faults: [String] = []
    var known: [Int] = []

    for step in 1...100_000 {
      now += .milliseconds(Int.random(in: 0...400, using: &random))
      var actions: [DownloadQueue.Action] = []
      var expected: [DownloadQueue.Action] = []
      // Whoever waits or runs.
      let someone = known.randomElement(using: &random) ?? 0
      switch Int.random(in: 0..<23, using: &random) {
      case 20, 21:
        actions = queue.silence(someone)
        expected = model.silence(someone)
      case 22:
        actions = queue.answer(someone)
        expected = model.answer(someone)
      case 0..<9:
        let host = Int.random(in: 0..<QueueModel.hosts, using: &random)
        let priority = LoadPriority.allCases.randomElement(using: &random) ?? .normal
        actions = queue.add(step, host: "h\(host)", priority: priority, now: now)
        expected = model.add(step, host: host, priority: priority, deadline: now + .seconds(15))
      case 9..<14:
        let ended = model.running.map(\.id).randomElement(using: &random) ?? 0
        actions = queue.remove(ended)
        expected = model.remove(ended)
      case 14:
        actions = queue.remove(someone)
        expected = model.remove(someone)
      case 15, 16:
        let priority = LoadPriority.allCases.randomElement(using: &random) ?? .normal
        queue.raise(someone, to: priority)
        model.raise(someone, to: priority)
      case 17:
        actions = queue.expire(now: now)
        expected = model.expire(now: now)
      case 18 where Int.random(in: 0..<10, using: &random) == 0:
        let host = Int.random(in: 0..<QueueModel.hosts, using: &random)
        let (taken, gone) = (queue.removeWaiting(for: "h\(host)"), model.removeWaiting(for: host))
        if taken != gone { faults.append("\(step): \(taken) taken out, not \(gone)") }
      case 18: break
      default:
        // Paused for a quarter of the time.
        if Int.random(in: 0..<4, using: &random) == 0 {
          queue.pause()
          model.isPaused = true
        } else {
          actions = queue.resume()
          expected = model.resume()
        }
      }
      known = model.waiting.map(\.id) + model.running.map(\.id)
      if actions != expected { faults.append("\(step): \(actions), not \(expected)") }
      if queue.runningCount != model.running.count || queue.waitingCount != model.waiting.count {
        faults.append("\(step): counts")
      }
      if let fault = model.fault { faults.append("\(step): \(fault)") }
      guard faults.isEmpty else { break }
    }
    #expect(faults == [])
    // At the end everyone gets a turn.
    #expect(queue.resume() == model.resume())
    while let ended = model.running.first?.id {
      #expect(queue.remove(ended) == model.remove(ended))
    }
    #expect(model.waiting.isEmpty && queue.waitingCount == 0 && queue.runningCount == 0)
  }
}

/// What `DownloadQueue` is to do, looked for among all loads each time.
private struct QueueModel {
  static let hosts = 6

  struct Entry {
    let id: Int
    let host: Int
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
  var silentHosts: Set<Int> = []

  init(
    limit: Int, limitPerHost: Int, silentLimit: Int, queueLimit: Int, order: DownloadOrder
  ) {
    (self.limit, self.limitPerHost, self.silentLimit) = (limit, limitPerHost, silentLimit)
    (self.queueLimit, self.order) = (queueLimit, order)
  }

  private var runningPerHost: [Int] {
    var counts = [Int](repeating: 0, count: Self.hosts)
    for entry in running { counts[entry.host] += 1 }
    return counts
  }

  mutating func add(
    _ id: Int, host: Int, priority: LoadPriority, deadline: ContinuousClock.Instant
  ) -> [DownloadQueue.Action] {
    waiting.append(Entry(id: id, host: host, priority: priority, deadline: deadline))
    let actions = startAll()
    guard actions.isEmpty, waiting.count > queueLimit else { return actions }
    waiting.removeLast()
    return [.refuse(id)]
  }

  mutating func silence(_ id: Int) -> [DownloadQueue.Action] {
    for entry in running where entry.id == id && silent.insert(id).inserted {
      silentHosts.insert(entry.host)
    }
    return startAll()
  }

  mutating func answer(_ id: Int) -> [DownloadQueue.Action] {
    for entry in running where entry.id == id {
      silent.remove(id)
      silentHosts.remove(entry.host)
    }
    return startAll()
  }

  private var hasPlaces: Bool {
    running.count { !silent.contains($0.id) } < limit && running.count < limit + silentLimit
  }

  mutating func remove(_ id: Int) -> [DownloadQueue.Action] {
    running.removeAll { $0.id == id }
    silent.remove(id)
    silentHosts.formIntersection(running.map(\.host))
    waiting.removeAll { $0.id == id }
    return startAll()
  }

  mutating func raise(_ id: Int, to priority: LoadPriority) {
    for index in waiting.indices where waiting[index].id == id {
      waiting[index].priority = max(waiting[index].priority, priority)
    }
  }

  mutating func removeWaiting(for host: Int) -> [Int] {
    defer { waiting.removeAll { $0.host == host } }
    return waiting.filter { $0.host == host }.map(\.id)
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
    while !isPaused, hasPlaces {
      let perHost = runningPerHost
      var best: Int?
      for (index, entry) in waiting.enumerated()
      where perHost[entry.host] < limitPerHost && !silentHosts.contains(entry.host) {
        let rank = best.map { waiting[$0].priority.rank } ?? -1
        let isBetter = entry.priority.rank > rank || entry.priority.rank == rank && order == .lifo
        if isBetter { best = index }
      }
      guard let best else { break }
      actions.append(.start(waiting[best].id))
      running.append(waiting.remove(at: best))
    }
    return actions
  }

  /// What must never be.
  var fault: String? {
    let perHost = runningPerHost
    if running.count > limit + silentLimit || waiting.count > queueLimit { return "over a bound" }
    if perHost.contains(where: { $0 > limitPerHost }) { return "over a host's bound" }
    if !isPaused, hasPlaces,
      waiting.contains(where: {
        perHost[$0.host] < limitPerHost && !silentHosts.contains($0.host)
      })
    {
      return "one waits who could run"
    }
    return nil
  }
}
