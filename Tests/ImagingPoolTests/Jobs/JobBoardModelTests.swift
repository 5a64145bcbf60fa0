// JobBoardModelTests: 100,000 random steps of the scheduler, compared with a naive model.

import Core
import TestSupport
import Testing

@testable import ImagingPool

@Suite(.onOwnThreads) struct JobBoardModelTests {
  @Test(arguments: 0..<20 as Range<UInt64>)
  func `random events have the same effect as in a simple model`(_ seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    var pair = BoardAndModel()
    for step in 0..<5_000 {
      if step == 4_500 { pair.stop() }
      let id = UInt64.random(in: max(pair.lastID, 12) - 12...pair.lastID, using: &random)
      let priority = LoadPriority.allCases.randomElement(using: &random) ?? .normal
      let slot = Int.random(in: 0..<BoardAndModel.slots, using: &random)
      switch Int.random(in: 0..<19, using: &random) {
      case 18: pair.setWidth(Int.random(in: -1...4, using: &random))
      case 16..<18: pair.takesLong(slot, bytes: Int.random(in: 1...3, using: &random))
      case 0..<6: pair.submit(priority, of: BoardAndModel.clients.randomElement(using: &random))
      case 6..<9: pair.raise(id, to: priority)
      case 9: pair.cancel(id)
      case 10: pair.loseWorker(of: slot)
      case 11: pair.workOn(slot, isReady: false)
      default: pair.workOn(slot, isReady: true)
      }
      pair.compare()
      if pair.hasDiffered {
        Issue.record("seed \(seed), step \(step)")
        return
      }
    }
    // Then: after the stop no job is left
    pair.expectEnd()
  }
}

/// A scheduler and a model whose every decision is a search through a short list.
private struct BoardAndModel {
  static let slots = 3
  static let limit = 5
  /// The memory of expensive jobs; each has 1 to 3.
  static let memory = 4
  static let clients = (1...3).map { LoadClient.network(.v4($0)) } + [.unlimited, .background]

  private struct Waiting {
    let id: UInt64
    /// The memory of an expensive job.
    var bytes = 0
    /// 0 to 2: of this rank; 3: a slot was woken for it; -1: it takes long.
    var rank: Int
    let client: LoadClient
    let number: Int
  }

  private var board = JobScheduler<UInt64>(slots: slots, limit: limit, memory: memory)
  /// In order of arrival.
  private var waiting: [Waiting] = []
  private var idle: [Int] = []
  private var running: [Int: (id: UInt64, isWanted: Bool, bytes: Int?, client: LoadClient)] = [:]
  private var passed = 0
  /// The jobs of higher ranks that were taken while jobs of each rank waited.
  private var overtaken = [0, 0, 0]
  /// Clients in the order of their last turns.
  private var turns: [LoadClient] = []
  private var arrivals = 0
  private var width = slots
  private var left: Set<Int> = []
  private var isStopped = false
  private(set) var lastID: UInt64 = 0
  private(set) var hasDiffered = false
  private let now = ContinuousClock.now

  init() { for _ in 0..<Self.slots { board.enter() } }

  private mutating func expect(
    _ isTrue: Bool, _ what: Comment, sourceLocation: SourceLocation = #_sourceLocation
  ) {
    guard !isTrue else { return }
    hasDiffered = true
    Issue.record(what, sourceLocation: sourceLocation)
  }

  mutating func submit(_ priority: LoadPriority, of client: LoadClient?) {
    lastID += 1
    arrivals += 1
    let client = client ?? .unlimited
    let admission = board.submit(lastID, job: lastID, clients: [client], priority: priority)
    let queued = waiting.filter { $0.rank < 3 }
    var hasPart = true
    if case .network = client { hasPart = queued.count { $0.client == client } < 2 }
    if isStopped {
      guard case .refused(.draining) = admission else { return expect(false, "\(admission)") }
    } else if hasWidth, let slot = idle.popLast() {
      waiting.append(Waiting(id: lastID, rank: 3, client: client, number: arrivals))
      guard case .next(slot) = admission else { return expect(false, "\(admission)") }
    } else if queued.count < Self.limit, !hasPart {
      guard case .refused(.rateLimited) = admission else { return expect(false, "\(admission)") }
    } else if queued.count < Self.limit {
      waiting.append(
        Waiting(id: lastID, rank: priority.rank, client: client, number: arrivals))
      guard case .waits = admission else { return expect(false, "\(admission)") }
    } else {
      guard case .refused(.overloaded) = admission else { return expect(false, "\(admission)") }
    }
  }

  mutating func raise(_ id: UInt64, to priority: LoadPriority) {
    board.raise(id, to: priority)
    guard let index = waiting.firstIndex(where: { $0.id == id }) else { return }
    if waiting[index].rank >= 0 { waiting[index].rank = max(waiting[index].rank, priority.rank) }
  }

  mutating func cancel(_ id: UInt64) {
    let cancelled = board.cancel(id)
    if let index = waiting.firstIndex(where: { $0.id == id }) {
      waiting.remove(at: index)
      expect(cancelled?.job == id && cancelled?.wake == nil, "cancelling what waits")
    } else if let slot = running.first(where: { $1.id == id && $1.isWanted })?.key {
      running[slot]?.isWanted = false
      expect(cancelled?.job == id && cancelled?.wake == slot, "cancelling what runs")
    } else {
      expect(cancelled == nil, "cancelling what is answered")
    }
  }

  mutating func loseWorker(of slot: Int) {
    guard running[slot] == nil, !left.contains(slot) else { return }
    idle.removeAll { $0 == slot }
    expect(board.update(slot: slot) { $0 = .init() } == nil, "nothing is refused for it")
  }

  /// A slot finishes its job or asks for one.
  mutating func workOn(_ slot: Int, isReady: Bool) {
    guard !left.contains(slot) else { return }
    if let (id, isWanted, _, _) = running.removeValue(forKey: slot) {
      return expect(board.finish(id) == (isWanted ? id : nil), "a job is handed back once")
    }
    idle.removeAll { $0 == slot }
    let next = board.next(slot: slot, isReady: isReady, now: now)
    if isStopped && waiting.isEmpty {
      left.insert(slot)
      guard case .leave = next else { return expect(false, "\(next)") }
      expect(board.leave(slot: slot) == [], "nothing is left")
    } else if !isReady {
      let other = waiting.isEmpty ? nil : idle.popLast()
      guard case .wait(other) = next else { return expect(false, "\(next)") }
    } else if let index = turn() {
      defer { wakeForWaiting() }
      let (id, rank, client) = (waiting[index].id, waiting[index].rank, waiting[index].client)
      let bytes = waiting.remove(at: index).bytes
      for lower in 0..<3 where rank != 3 {
        overtaken[lower] += lower < rank ? 1 : 0
        if lower == rank { overtaken[lower] = 0 }
      }
      if case .network = client { turns = turns.filter { $0 != client } + [client] }
      passed = rank >= 0 && waiting.contains { $0.rank < 0 } ? passed + 1 : 0
      running[slot] = (id, true, rank < 0 ? bytes : nil, client)
      guard case .job(id, id) = next else { return expect(false, "\(next) in place of \(id)") }
    } else {
      if runningQuick < width { passed = 0 }
      idle.append(slot)
      guard case .wait(nil) = next else { return expect(false, "\(next)") }
    }
  }

  /// A slot that takes a job wakes another one for a job that may run.
  private mutating func wakeForWaiting() {
    let first = best(waiting.filter { $0.rank < 0 })
    let mayRun =
      hasWidth && waiting.contains { 0..<3 ~= $0.rank }
      || first.map { hasRoom(forLong: $0.bytes) } == true
    let slot = mayRun ? idle.popLast() : nil
    expect(board.slotForWaiting() == slot, "a slot is woken for a job that may run")
  }

  /// More or fewer jobs may run at a time.
  mutating func setWidth(_ count: Int) {
    width = min(max(count, 1), Self.slots)
    let woken = mayTakeQuick && !waiting.isEmpty ? idle : []
    if !woken.isEmpty { idle = [] }
    expect(board.setWidth(count) == woken, "idle slots are woken for what waits")
  }

  private var runningQuick: Int { running.values.filter { $0.bytes == nil }.count }

  private var hasWidth: Bool {
    runningQuick + waiting.filter { $0.rank == 3 }.count < width || width == Self.slots
  }

  private var mayTakeQuick: Bool { runningQuick < width || width == Self.slots }

  private func hasRoom(forLong bytes: Int) -> Bool {
    let others = running.values.compactMap(\.bytes)
    return others.isEmpty
      || others.count < 2 && others.reduce(bytes, +) <= Self.memory
  }

  /// Where the job is whose turn it is.
  private func turn() -> Int? {
    let firstLong = best(waiting.filter { $0.rank < 0 })
    let mayTakeLong = firstLong.map { hasRoom(forLong: $0.bytes) } ?? false
    let woken = waiting.filter { $0.rank == 3 }
    let quick = waiting.filter { 0..<3 ~= $0.rank }
    let overdue = quick.filter { overtaken[$0.rank] >= 8 }.map(\.rank).max()
    var found: Waiting?
    if mayTakeQuick, !mayTakeLong || passed < 8 {
      found = best(woken) ?? best(quick.filter { overdue == nil || $0.rank == overdue })
    }
    if found == nil, mayTakeLong { found = firstLong }
    return waiting.firstIndex { $0.id == found?.id }
  }

  /// The job of several whose client's turn it is.
  private func best(_ jobs: [Waiting]) -> Waiting? {
    jobs.max { order(of: $0).lexicographicallyPrecedes(order(of: $1)) }
  }

  private func order(of job: Waiting) -> [Int] {
    let own = running.values.count { $0.client == job.client }
    let isNetwork = job.client != .unlimited && job.client != .background
    // The share is one of three slots.
    let isAbove = isNetwork && own > 0 || job.client == .background
    let rank = isAbove && 0..<3 ~= job.rank ? 0 : job.rank
    let turn = isNetwork ? own : job.client == .background ? Int.max : 0
    return [rank, -turn, -(turns.firstIndex(of: job.client) ?? -1), job.rank, -job.number]
  }

  /// The slot finds that its job takes long.
  mutating func takesLong(_ slot: Int, bytes: Int) {
    guard let (id, isWanted, known, client) = running[slot], known == nil else { return }
    let goesOn = !isWanted || waiting.isEmpty && hasRoom(forLong: bytes)
    expect(board.takesLong(id, bytes: bytes) == goesOn, "a long job goes on, or waits")
    if goesOn {
      if isWanted { running[slot]?.bytes = bytes }
    } else {
      running[slot] = nil
      arrivals += 1
      waiting.append(Waiting(id: id, bytes: bytes, rank: -1, client: client, number: arrivals))
    }
    expect((board.bytesOfLong(id) != nil) == (goesOn && isWanted), "it is known as long")
  }

  mutating func stop() {
    isStopped = true
    board.stop(at: now + .seconds(1))
  }

  mutating func compare() {
    for rank in 0..<3 where !waiting.contains(where: { $0.rank == rank }) { overtaken[rank] = 0 }
    expect(board.waitingCount == waiting.count, "as many wait")
    expect(board.runningCount == running.count, "as many run")
    expect(board.width == width, "as many may run")
    expect(board.idle.count == idle.count, "as many are idle")
    let bytes = running.values.compactMap(\.bytes)
    expect(board.bytesOfLong == bytes.reduce(0, +), "as much memory is promised")
    expect(bytes.count < 2 || board.bytesOfLong <= Self.memory, "it fits")
  }

  mutating func expectEnd() {
    expect(left.count == Self.slots && waiting.isEmpty && running.isEmpty, "all have left")
    expect(board.staffed == 0, "no slot has a worker")
  }
}
