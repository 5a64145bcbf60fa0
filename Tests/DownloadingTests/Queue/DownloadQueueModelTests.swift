// DownloadQueueModelTests: tests of DownloadQueue against a simple model.

import Model
import TestSupport
import Testing

@testable import Downloading

@Suite(.onOwnThreads) struct DownloadQueueModelTests {
  @Test(arguments: DownloadOrder.allCases)
  func `a random schedule behaves like the model`(_ order: DownloadOrder) {
    var random = SeededGenerator(seed: 20_261_121)
    let start = ContinuousClock.now
    var queue = DownloadQueue(
      limit: 8, limitPerHost: 3, silentLimit: 4, queueLimit: 20, queueTimeout: .seconds(15),
      order: order)
    var model = QueueModel(
      limit: 8, limitPerHost: 3, silentLimit: 4, queueLimit: 20, order: order)
    var now = start
    var faults: [String] = []
    var known: [Int] = []

    for step in 1...100_000 {
      now += .milliseconds(Int.random(in: 0...400, using: &random))
      var actions: [DownloadQueue.Action] = []
      var expected: [DownloadQueue.Action] = []
      // A waiting or running load.
      let someone = known.randomElement(using: &random) ?? 0
      switch Int.random(in: 0..<27, using: &random) {
      case 20, 21:
        let isAlive = Bool.random(using: &random)
        actions = queue.silence(someone, isAlive: isAlive)
        expected = model.silence(someone, isAlive: isAlive)
      case 23..<26:
        let rate = Int.random(in: 0..<4, using: &random)
        actions = queue.slow(someone, rate: rate)
        expected = model.slow(someone, rate: rate)
      case 26:
        queue.recover(someone)
        model.rates[someone] = nil
      case 22:
        // The load's host, or the host it was redirected to.
        let own = model.running.first { $0.id == someone }?.host
        let other = Int.random(in: 0..<QueueModel.hosts, using: &random)
        let speaker = Bool.random(using: &random) ? own ?? other : other
        actions = queue.answer(someone, from: "h\(speaker)")
        expected = model.answer(someone, from: speaker)
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
        let taken = queue.removeWaiting(for: "h\(host)")
        let gone = model.removeWaiting(for: host)
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
      if queue.runningCount != model.running.count || queue.waitingCount != model.waiting.count
        || queue.silentCount != model.silent.count || queue.slowCount != model.rates.count
      {
        faults.append("\(step): counts")
      }
      if let fault = model.fault { faults.append("\(step): \(fault)") }
      guard faults.isEmpty else { break }
    }
    #expect(faults == [])
    // At the end every load gets a slot.
    #expect(queue.resume() == model.resume())
    while let ended = model.running.first?.id {
      #expect(queue.remove(ended) == model.remove(ended))
    }
    #expect(model.waiting.isEmpty && queue.waitingCount == 0 && queue.runningCount == 0)
  }
}

/// A naive model of `DownloadQueue` that searches all loads each time.
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
  /// The rates of slow loads.
  var rates: [Int: Int] = [:]
  var answered: Set<Int> = []
  /// The host that responded to each load last; none for a silent load.
  var senders: [Int: Int] = [:]
  var silentHosts: Set<Int> = []

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
    _ id: Int, host: Int, priority: LoadPriority, deadline: ContinuousClock.Instant
  ) -> [DownloadQueue.Action] {
    waiting.append(Entry(id: id, host: host, priority: priority, deadline: deadline))
    let actions = startAll()
    guard actions.isEmpty, waiting.count > queueLimit else { return actions }
    waiting.removeLast()
    return [.refuse(id)]
  }

  mutating func silence(_ id: Int, isAlive: Bool) -> [DownloadQueue.Action] {
    for entry in running
    where entry.id == id && silent.insert(id).inserted {
      rates[id] = nil
      senders[id] = nil
      let sends = senders.contains { $0.value == entry.host && rates[$0.key] == nil }
      if !answered.contains(id), !isAlive, !sends { silentHosts.insert(entry.host) }
    }
    return startAll()
  }

  mutating func slow(_ id: Int, rate: Int) -> [DownloadQueue.Action] {
    for entry in running where entry.id == id && !silent.contains(id) { rates[id] = rate }
    return startAll()
  }

  mutating func answer(_ id: Int, from speaker: Int) -> [DownloadQueue.Action] {
    for entry in running where entry.id == id {
      silent.remove(id)
      rates[id] = nil
      answered.insert(id)
      senders[id] = speaker
      silentHosts.remove(speaker)
    }
    forgive()
    return startAll()
  }

  /// A host is silent only for loads that wait for its first response.
  private mutating func forgive() {
    silentHosts.formIntersection(running.filter { !answered.contains($0.id) }.map(\.host))
  }

  private var hasPlaces: Bool {
    running.count { !silent.contains($0.id) && rates[$0.id] == nil } < limit
  }

  private mutating func end(_ id: Int) {
    running.removeAll { $0.id == id }
    silent.remove(id)
    rates[id] = nil
    answered.remove(id)
    senders[id] = nil
    forgive()
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
      if running.count == limit + silentLimit {
        // In order of start: the first of the slowest.
        let stalled = running.map(\.id).filter { silent.contains($0) || rates[$0] != nil }
        guard let slowest = stalled.min(by: { rates[$0] ?? 0 < rates[$1] ?? 0 }) else { break }
        actions.append(.giveUp(slowest))
        end(slowest)
      }
      actions.append(.start(waiting[best].id))
      running.append(waiting.remove(at: best))
    }
    return actions
  }

  /// A violated invariant; `nil` if all hold.
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
