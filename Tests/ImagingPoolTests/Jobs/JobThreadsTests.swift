// JobThreadsTests: the threads that the scheduler gives a job.

import Model
import TestSupport
import Testing

@testable import ImagingPool

@Suite(.onOwnThreads) struct JobThreadsTests {
  @Test func `a job has the cores that no other job has or waits for`() {
    // Given
    let now = ContinuousClock.now
    var board = JobScheduler<String>(slots: 4, limit: 9)
    for slot in 0..<4 {
      board.enter()
      board.expectWait(slot: slot, now: now)
    }
    board.expectAdmitted(1, job: "a", wake: 3)
    board.expectJob(1, slot: 3, now: now)
    #expect(board.threads(onCores: 64) == 4)
    #expect(board.threads(onCores: 2) == 2)
    board.expectAdmitted(2, job: "b", wake: 2)
    #expect(board.threads(onCores: 4) == 3)
    board.expectJob(2, slot: 2, now: now)
    #expect(board.threads(onCores: 4) == 3)
    // Event loops need cores.
    #expect(board.setWidth(2) == [])
    #expect(board.threads(onCores: 4) == 1)
    board.expectAdmitted(3, job: "c", wake: nil)
    #expect(board.threads(onCores: 4) == 1)
  }
}
