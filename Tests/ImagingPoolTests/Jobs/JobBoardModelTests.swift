// JobBoardModelTests: 100,000 random steps of the scheduler, compared with a naive model.

import Model
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
      case 0..<6: pair.submit(priority)
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

  private struct Waiting {
    let id: UInt64
    /// The memory of an expensive job.
    var bytes = 0
    /// 0 to 2: of this rank; 3: a slot was woken for it; -1: it takes long.
    var rank: Int
  }

  private var board = JobScheduler<UInt64>(slots: slots, limit: limit, memory: memory)
  /// In order of arrival.
  private var waiting: [Waiting] = []
  private var idle: [Int] = []
  private var running: [Int: (id: UInt64, isWanted: Bool, bytes: Int?)] = [:]
  private var passed = 0
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

  mutating func submit(_ priority: LoadPriority) {
    lastID += 1
    let admission = board.submit(lastID, job: lastID, priority: priority)
    if isStopped {
      guard case .refused(.draining) = admission else { return expect(false, "\(admission)") }
    } else if hasWidth, let slot = idle.popLast() {
      waiting.append(Waiting(id: lastID, rank: 3))
      guard case .next(slot) = admission else { return expect(false, "\(admission)") }
    } else if waiting.filter({ $0.rank < 3 }).count < Self.limit {
      waiting.append(Waiting(id: lastID, rank: priority.rank))
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
    if let (id, isWanted, _) = running.removeValue(forKey: slot) {
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
      let id = waiting[index].id
      let rank = waiting[index].rank
      let bytes = waiting.remove(at: index).bytes
      passed = rank >= 0 && waiting.contains { $0.rank < 0 } ? passed + 1 : 0
      running[slot] = (id, true, rank < 0 ? bytes : nil)
      guard case .job(id, id) = next else { return expect(false, "\(next) in place of \(id)") }
    } else {
      if runningQuick < width { passed = 0 }
      idle.append(slot)
      guard case .wait(nil) = next else { return expect(false, "\(next)") }
    }
  }

  /// A slot that takes a job wakes another one for a job that may run.
  private mutating func wakeForWaiting() {
    let first = waiting.first { $0.rank < 0 }
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
    let firstLong = waiting.first { $0.rank < 0 }
    let mayTakeLong = firstLong.map { hasRoom(forLong: $0.bytes) } ?? false
    let mayTakeQuick = mayTakeQuick
    if mayTakeLong, passed >= 8 || !mayTakeQuick { return waiting.firstIndex { $0.rank < 0 } }
    let ranks = waiting.map(\.rank).filter { $0 >= 0 ? mayTakeQuick : mayTakeLong }
    guard let highest = ranks.max() else { return nil }
    return waiting.firstIndex { $0.rank == highest }
  }

  /// The slot finds that its job takes long.
  mutating func takesLong(_ slot: Int, bytes: Int) {
    guard let (id, isWanted, known) = running[slot], known == nil else { return }
    let goesOn = !isWanted || waiting.isEmpty && hasRoom(forLong: bytes)
    expect(board.takesLong(id, bytes: bytes) == goesOn, "a long job goes on, or waits")
    if goesOn {
      if isWanted { running[slot]?.bytes = bytes }
    } else {
      running[slot] = nil
      waiting.append(Waiting(id: id, bytes: bytes, rank: -1))
    }
    expect((board.bytesOfLong(id) != nil) == (goesOn && isWanted), "it is known as long")
  }

  mutating func stop() {
    isStopped = true
    board.stop(at: now + .seconds(1))
  }

  mutating func compare() {
    expect(board.waitingCount == waiting.count, "as many wait")
    expect(board.runningCount == running.count, "as many run")
    expect(board.width == width, "as many may run")
    expect(board.idleCount == idle.count, "as many are idle")
    let bytes = running.values.compactMap(\.bytes)
    expect(board.bytesOfLong == bytes.reduce(0, +), "as much memory is promised")
    expect(bytes.count < 2 || board.bytesOfLong <= Self.memory, "it fits")
  }

  mutating func expectEnd() {
    expect(left.count == Self.slots && waiting.isEmpty && running.isEmpty, "all have left")
    expect(board.staffed == 0, "no slot has a worker")
  }
}
