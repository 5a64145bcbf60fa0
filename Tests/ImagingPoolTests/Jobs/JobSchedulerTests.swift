// JobSchedulerTests: decisions of the scheduler beyond those that `JobBoardModelTests` compares
// with a model.

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
}
