// JobSchedulerTests: the scheduler's decisions without threads, clocks or processes.

import Model
import TestSupport
import Testing

@testable import ImagingPool

@Suite(.onOwnThreads) struct JobBoardTests {
  let now = ContinuousClock.now

  private func board(slots: Int, limit: Int) -> JobScheduler<String> {
    var board = JobScheduler<String>(slots: slots, limit: limit)
    for _ in 0..<slots { board.enter() }
    return board
  }

  @Test func `jobs run in order of arrival`() {
    var board = board(slots: 1, limit: 9)
    for id in 1...3 { board.expectAdmitted(UInt64(id), job: "\(id)", wake: nil) }
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
    board.expectAdmitted(1, job: "a", wake: 0)
    board.expectAdmitted(2, job: "b", wake: 1)
    board.expectAdmitted(3, job: "c", wake: nil)
  }

  @Test func `as many quick jobs run as workers have cores, and long ones beside them`() {
    // Given three slots that wait, and cores for one
    var board = board(slots: 3, limit: 9)
    for slot in 0..<3 { board.expectWait(slot: slot, now: now) }
    #expect(board.setWidth(1) == [])
    // When
    board.expectAdmitted(1, job: "a", wake: 2)
    board.expectAdmitted(2, job: "b", wake: nil)
    board.expectAdmitted(3, job: "c", wake: nil)
    board.expectJob(1, slot: 2, now: now)
    // Then
    board.expectWait(slot: 1, now: now)
    #expect(board.slotForWaiting() == nil)
    // When it is found to take long, then it waits for the others.
    let continues = board.takesLong(1, bytes: 5)
    #expect(!continues)
    board.expectJob(2, slot: 2, now: now)
    #expect(board.slotForWaiting() == 1)
    // Then it runs beside them, and the third one waits.
    board.expectJob(1, slot: 1, now: now)
    board.expectWait(slot: 0, now: now)
    // A quick job that ends leaves its place to the next one, by whichever slot.
    #expect(board.finish(2) == "b")
    #expect(board.slotForWaiting() == 0)
    board.expectJob(3, slot: 0, now: now)
    // More cores wake what is idle, if jobs wait.
    board.expectWait(slot: 2, now: now)
    #expect(board.setWidth(2) == [])
    #expect(board.setWidth(1) == [])
    board.expectAdmitted(4, job: "d", wake: nil)
    #expect(board.setWidth(9) == [2] && board.width == 3)
    board.expectJob(4, slot: 2, now: now)
  }

  @Test func `a job whose slot came when cores were fewer runs as soon as they are more`() {
    var board = board(slots: 3, limit: 9)
    for slot in 0..<3 { board.expectWait(slot: slot, now: now) }
    board.expectAdmitted(1, job: "a", wake: 2)
    board.expectAdmitted(2, job: "b", wake: 1)
    board.expectJob(1, slot: 2, now: now)
    #expect(board.setWidth(1) == [])
    board.expectWait(slot: 1, now: now)
    // Then
    #expect(board.setWidth(2) == [0, 1])
    board.expectJob(2, slot: 1, now: now)
  }

  @Test func `a long job yields to quick jobs, and one slot stays free of long jobs`() {
    // Given three jobs that take long, and one that is quick
    var board = board(slots: 2, limit: 9)
    for id in 1...3 { board.expectAdmitted(UInt64(id), job: "long", priority: .high, wake: nil) }
    board.expectAdmitted(4, job: "quick", priority: .low, wake: nil)
    // When the first two are found to take long, then they wait, whatever they are raised to
    for id in 1...3 {
      board.expectJob(UInt64(id), slot: 0, now: now)
      let goesOn = board.takesLong(UInt64(id), bytes: 0)
      #expect(!goesOn)
      board.raise(UInt64(id), to: .high)
    }
    board.expectJob(4, slot: 0, now: now)
    board.expectJob(1, slot: 1, now: now)
    #expect(board.bytesOfLong(1) != nil && board.bytesOfLong(4) == nil)
    #expect(board.finish(4) == "quick")
    // Of two slots one takes no more of them
    board.expectWait(slot: 0, now: now)
    board.expectAdmitted(5, job: "quick", wake: 0)
    board.expectJob(5, slot: 0, now: now)
    #expect(board.finish(1) == "long")
    board.expectJob(2, slot: 1, now: now)
  }

  @Test(arguments: [(1, 1), (2, 1), (3, 2), (4, 2), (5, 3), (8, 4)])
  func `half of the slots take no long jobs`(slots: Int, long: Int) {
    // Given a long job for each slot
    var board = board(slots: slots, limit: 99)
    for id in 0..<slots { board.expectAdmitted(UInt64(id), job: "long", wake: nil) }
    for id in 0..<slots { board.expectJob(UInt64(id), slot: id, now: now) }
    // When each is found to take long
    let running = (0..<slots).filter { board.takesLong(UInt64($0), bytes: 0) }
    // Then
    #expect(running.count == (slots == 1 ? 1 : long))
    #expect(board.waitingCount == slots - running.count)
    for slot in running.count..<slots {
      board.expectWait(slot: slot, now: now)
    }
    // The others are for quick jobs, and a long one takes the place of the next one that ends.
    for id in 100..<(100 + slots - long) {
      board.expectAdmitted(UInt64(id), job: "quick", wake: slots - 1 - (id - 100))
      board.expectJob(UInt64(id), slot: slots - 1 - (id - 100), now: now)
    }
    #expect(board.finish(0) == "long")
    if slots > long { board.expectJob(UInt64(long), slot: 0, now: now) }
  }

  @Test func `a long job continues on an idle pool and gets its turn on a busy one`() {
    var board = board(slots: 1, limit: 99)
    board.expectAdmitted(1, job: "long", wake: nil)
    board.expectJob(1, slot: 0, now: now)
    let goesOn = board.takesLong(1, bytes: 0)
    #expect(goesOn && board.bytesOfLong(1) == 0)
    #expect(board.finish(1) == "long")
    // Given one that waits while others come all the time
    for id in 2...20 { board.expectAdmitted(UInt64(id), job: "", wake: nil) }
    board.expectJob(2, slot: 0, now: now)
    let waits = !board.takesLong(2, bytes: 0)
    #expect(waits)
    for id in 3...10 {
      board.expectJob(UInt64(id), slot: 0, now: now)
      _ = board.finish(UInt64(id))
    }
    board.expectJob(2, slot: 0, now: now)
  }

  @Test func `a slot without a worker gets no job`() {
    var board = board(slots: 1, limit: 9)
    board.expectAdmitted(1, job: "a", wake: nil)
    guard case .wait = board.next(slot: 0, isReady: false, now: now) else {
      Issue.record("not waiting")
      return
    }
    board.expectJob(1, slot: 0, now: now)
  }

  @Test func `a woken slot whose worker died passes the job on`() {
    // Given two idle slots, one of them woken
    var board = board(slots: 2, limit: 9)
    board.expectWait(slot: 1, now: now)
    board.expectWait(slot: 0, now: now)
    board.expectAdmitted(1, job: "a", wake: 0)
    // When its worker is dead, then the other slot is woken, once
    guard case .wait(wake: 1) = board.next(slot: 0, isReady: false, now: now),
      case .wait(wake: nil) = board.next(slot: 0, isReady: false, now: now)
    else {
      Issue.record("no slot was woken, or one twice")
      return
    }
    board.expectJob(1, slot: 1, now: now)
  }

  @Test func `without queue space, a job for an idle slot is admitted`() {
    var board = board(slots: 1, limit: 0)
    guard case .refused(.overloaded) = board.submit(1, job: "a", priority: .normal) else {
      Issue.record("admitted")
      return
    }
    board.expectWait(slot: 0, now: now)
    board.expectAdmitted(2, job: "b", wake: 0)
  }

  @Test func `a cancelled running job is returned once and marked as abandoned`() {
    var board = board(slots: 1, limit: 9)
    board.expectAdmitted(1, job: "a", wake: nil)
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

  @Test func `when no slot can start a worker, jobs are refused with the reason until one can`() {
    var board = board(slots: 2, limit: 9)
    board.expectAdmitted(1, job: "a", wake: nil)
    #expect(board.update(slot: 0) { $0.fault = "no memory" } == nil)
    let refused = board.update(slot: 1) { $0.fault = "no memory" }
    #expect(refused?.jobs == ["a"] && refused?.reason == .internal(detail: "no memory"))
    guard
      case .refused(.internal(detail: "no memory")) = board.submit(2, job: "b", priority: .normal)
    else {
      Issue.record("admitted")
      return
    }
    #expect(board.update(slot: 1) { $0 = .init(pid: 7) } == nil)
    board.expectAdmitted(3, job: "c", wake: nil)
  }

  @Test func `jobs of a higher priority run first, in order of arrival within one`() {
    var board = board(slots: 1, limit: 9)
    let priorities: [LoadPriority] = [.normal, .low, .high, .normal, .low, .high]
    for (index, priority) in priorities.enumerated() {
      board.expectAdmitted(UInt64(index), job: "\(index)", priority: priority, wake: nil)
    }
    for id in [2, 5, 0, 3, 1, 4] as [UInt64] { board.expectJob(id, slot: 0, now: now) }
  }

  @Test func `a waiting job's priority can be raised, never lowered, and its arrival order stays`()
  {
    // Given
    var board = board(slots: 1, limit: 9)
    let priorities: [LoadPriority] = [.normal, .low, .normal, .high, .low, .normal]
    for (index, priority) in priorities.enumerated() {
      board.expectAdmitted(UInt64(index), job: "\(index)", priority: priority, wake: nil)
    }
    // When
    board.raise(1, to: .high)
    board.raise(4, to: .normal)
    board.raise(2, to: .low)
    board.raise(99, to: .high)
    // Then
    #expect(board.waitingCount == 6)
    for id in [1, 3, 0, 2, 4, 5] as [UInt64] { board.expectJob(id, slot: 0, now: now) }
    #expect(board.waitingCount == 0)
  }

  @Test func `a job with a woken slot runs before later jobs`() {
    // Given
    var board = board(slots: 2, limit: 9)
    board.expectWait(slot: 0, now: now)
    board.expectAdmitted(1, job: "a", priority: .low, wake: 0)
    board.expectAdmitted(2, job: "b", priority: .high, wake: nil)
    // When the other slot asks before the woken one
    board.expectJob(1, slot: 1, now: now)
    board.expectJob(2, slot: 0, now: now)
  }

  @Test func `a refused job is told how long the queue takes`() {
    // Given a full queue of two slots
    var board = board(slots: 2, limit: 10)
    for id in 0..<10 { board.expectAdmitted(UInt64(id), job: "a", wake: nil) }
    func seconds() -> Int? {
      guard
        case .refused(.overloaded("imaging", let seconds)) = board.submit(
          99, job: "b", priority: .normal)
      else { return nil }
      return seconds
    }
    #expect(seconds() == 1)
    // When a job took four seconds
    _ = board.finish(100, took: .seconds(4))
    // Then ten jobs take twenty
    #expect(seconds() == 20)
  }

  @Test func `a job of high priority is refused when the queue is full`() {
    var board = board(slots: 1, limit: 1)
    board.expectAdmitted(1, job: "a", priority: .low, wake: nil)
    guard case .refused(.overloaded) = board.submit(2, job: "b", priority: .high) else {
      Issue.record("admitted")
      return
    }
    board.expectJob(1, slot: 0, now: now)
  }

  @Test func `jobs with a woken slot do not count against the queue limit`() {
    var board = board(slots: 2, limit: 0)
    board.expectWait(slot: 0, now: now)
    board.expectWait(slot: 1, now: now)
    board.expectAdmitted(1, job: "a", wake: 1)
    board.expectAdmitted(2, job: "b", wake: 0)
    guard case .refused(.overloaded) = board.submit(3, job: "c", priority: .normal) else {
      Issue.record("admitted")
      return
    }
  }

  @Test func `removing and raising jobs does not grow a long queue`() {
    var list = JobQueue<Int>(share: 1)
    list.append(0, job: 0, turn: .by(.low))
    for id in 1...10_000 as ClosedRange<UInt64> {
      list.append(id, job: Int(id), turn: .by(.low))
      list.raise(id, to: .by(.normal))
      #expect(list.remove(id) == Int(id))
      #expect(list.places < 100)
    }
    #expect(list.count == 1)
    #expect(list.popFirst()?.id == 0)
    #expect(list.popFirst() == nil)
  }
}
