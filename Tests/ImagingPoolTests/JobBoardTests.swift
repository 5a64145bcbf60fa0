// JobBoardTests: the pool's decisions without threads, clocks or processes.

import Model
import TestSupport
import Testing

@testable import ImagingPool

@Suite struct JobBoardTests {
  let now = ContinuousClock.now

  private func board(slots: Int, limit: Int) -> JobBoard<String> {
    var board = JobBoard<String>(slots: slots, limit: limit)
    for _ in 0..<slots { board.enter() }
    return board
  }

  @Test func `jobs are done in the order they came`() {
    var board = board(slots: 1, limit: 9)
    for id in 1...3 { board.expectAdmitted(UInt64(id), "\(id)", wake: nil) }
    for id in 1...3 {
      board.expectJob(UInt64(id), slot: 0, now: now)
      #expect(board.finish(UInt64(id)) == "\(id)")
    }
    board.expectWait(slot: 0, now: now)
  }

  @Test func `a job wakes the slot that worked last, and each slot once`() {
    var board = board(slots: 2, limit: 9)
    board.expectWait(slot: 1, now: now)
    board.expectWait(slot: 0, now: now)
    board.expectAdmitted(1, "a", wake: 0)
    board.expectAdmitted(2, "b", wake: 1)
    board.expectAdmitted(3, "c", wake: nil)
  }

  @Test func `a slot without a worker gets no job`() {
    var board = board(slots: 1, limit: 9)
    board.expectAdmitted(1, "a", wake: nil)
    guard case .wait = board.next(slot: 0, isReady: false, now: now) else {
      Issue.record("not waiting")
      return
    }
    board.expectJob(1, slot: 0, now: now)
  }

  @Test func `a slot woken for a job that its worker did not live to see passes it on`() {
    // Given two slots that wait, one of them woken
    var board = board(slots: 2, limit: 9)
    board.expectWait(slot: 1, now: now)
    board.expectWait(slot: 0, now: now)
    board.expectAdmitted(1, "a", wake: 0)
    // When its worker turns out to be dead, then the other is woken, once
    guard case .wait(wake: 1) = board.next(slot: 0, isReady: false, now: now),
      case .wait(wake: nil) = board.next(slot: 0, isReady: false, now: now)
    else {
      Issue.record("nobody was woken, or twice")
      return
    }
    board.expectJob(1, slot: 1, now: now)
  }

  @Test func `with no place to wait, a job for an idle slot is admitted all the same`() {
    var board = board(slots: 1, limit: 0)
    guard case .refused(.overloaded) = board.submit(1, "a") else {
      Issue.record("admitted")
      return
    }
    board.expectWait(slot: 0, now: now)
    board.expectAdmitted(2, "b", wake: 0)
  }

  @Test func `a running job that is cancelled is handed back once, and known as abandoned`() {
    var board = board(slots: 1, limit: 9)
    board.expectAdmitted(1, "a", wake: nil)
    board.expectJob(1, slot: 0, now: now)
    #expect(!board.orders(for: 1).isAbandoned)
    let cancelled = board.cancel(1)
    #expect(cancelled?.job == "a" && cancelled?.wake == 0)
    #expect(board.orders(for: 1).isAbandoned)
    #expect(board.cancel(1) == nil)
    #expect(board.runningCount == 1)
    #expect(board.finish(1) == nil)
    #expect(board.runningCount == 0)
  }

  @Test func `once no slot can start a worker, jobs are refused with the reason, until one can`() {
    var board = board(slots: 2, limit: 9)
    board.expectAdmitted(1, "a", wake: nil)
    #expect(board.update(slot: 0) { $0.fault = "no memory" } == nil)
    let refused = board.update(slot: 1) { $0.fault = "no memory" }
    #expect(refused?.jobs == ["a"] && refused?.reason == .internal(detail: "no memory"))
    guard case .refused(.internal(detail: "no memory")) = board.submit(2, "b") else {
      Issue.record("admitted")
      return
    }
    #expect(board.update(slot: 1) { $0 = .init(pid: 7) } == nil)
    board.expectAdmitted(3, "c", wake: nil)
  }

  @Test func `in any order of events every job is handed back exactly once`() {
    for seed in 0..<20 as Range<UInt64> {
      var random = SeededGenerator(seed: seed)
      var board = board(slots: 3, limit: 5)
      var open: Set<UInt64> = []
      var running: [UInt64?] = [nil, nil, nil]
      var left: Set<Int> = []
      var idle: Set<Int> = []
      var nextID: UInt64 = 0
      func close(_ id: String?) {
        guard let id = id.flatMap({ UInt64($0) }) else { return }
        #expect(open.remove(id) != nil, "seed \(seed): job \(id) was handed back twice")
      }
      for step in 0..<5_000 {
        if step == 4_500 { board.stop(at: now + .seconds(1)) }
        switch Int.random(in: 0..<3, using: &random) {
        case 0:
          nextID += 1
          if case .admitted(let wake) = board.submit(nextID, "\(nextID)") {
            open.insert(nextID)
            if let wake { #expect(idle.remove(wake) != nil) }
          }
        case 1:
          close(board.cancel(.random(in: 0...nextID, using: &random))?.job)
        default:
          let slot = Int.random(in: 0..<3, using: &random)
          if left.contains(slot) { break }
          if let id = running[slot] {
            running[slot] = nil
            close(board.finish(id))
          } else {
            idle.remove(slot)
            switch board.next(slot: slot, isReady: true, now: now) {
            case .job(let id, _): running[slot] = id
            case .wait: idle.insert(slot)
            case .leave:
              left.insert(slot)
              board.leave(slot: slot).forEach(close)
            }
          }
        }
        #expect(board.waitingCount <= board.limit + 3)
        #expect(board.runningCount == running.compactMap(\.self).count)
      }
      // Then: after the end nothing is left
      #expect(left.count == 3 && open.isEmpty && board.waitingCount == 0, "seed \(seed)")
    }
  }

  @Test func `those who leave a long queue do not make it grow`() {
    var list = WaitingList<Int>()
    list.append(0, 0)
    for id in 1...10_000 as ClosedRange<UInt64> {
      list.append(id, Int(id))
      #expect(list.remove(id) == Int(id))
    }
    #expect(list.count == 1)
    #expect(list.popFirst()?.id == 0)
    #expect(list.popFirst() == nil)
  }

  @Test func `failed starts are retried later and later, and a good one ends that`() {
    var backoff = RespawnBackoff()
    #expect(backoff.allows(now))
    var waits: [Duration] = []
    for _ in 0..<20 {
      backoff.failed(at: now)
      waits.append(now.duration(to: backoff.notBefore ?? now))
    }
    #expect(waits.prefix(3) == [.milliseconds(100), .milliseconds(200), .milliseconds(400)])
    #expect(waits.last == .seconds(5))
    #expect(!backoff.allows(now) && backoff.allows(now + .seconds(5)))
    backoff.succeeded()
    #expect(backoff.allows(now))
  }
}

extension JobBoard where Job == String {
  fileprivate mutating func expectAdmitted(_ id: UInt64, _ job: String, wake: Int?) {
    guard case .admitted(let slot) = submit(id, job) else {
      Issue.record("\(job) was refused")
      return
    }
    #expect(slot == wake)
  }

  fileprivate mutating func expectJob(_ id: UInt64, slot: Int, now: ContinuousClock.Instant) {
    guard case .job(let found, _) = next(slot: slot, isReady: true, now: now) else {
      Issue.record("no job")
      return
    }
    #expect(found == id)
  }

  fileprivate mutating func expectWait(slot: Int, now: ContinuousClock.Instant) {
    guard case .wait = next(slot: slot, isReady: true, now: now) else {
      Issue.record("not waiting")
      return
    }
  }
}
