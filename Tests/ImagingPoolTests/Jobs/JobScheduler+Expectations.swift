// JobScheduler+Expectations: what tests expect of the scheduler's answers.

import Model
import Testing

@testable import ImagingPool

extension JobScheduler where Job == String {
  mutating func expectAdmitted(
    _ id: UInt64, job: String, priority: LoadPriority = .normal, wake: Int?
  ) {
    switch submit(id, job: job, priority: priority) {
    case .next(let slot): #expect(slot == wake)
    case .waits: #expect(wake == nil)
    case .refused: Issue.record("\(job) was refused")
    }
  }

  mutating func expectJob(_ id: UInt64, slot: Int, now: ContinuousClock.Instant) {
    guard case .job(let found, _) = next(slot: slot, isReady: true, now: now) else {
      Issue.record("no job")
      return
    }
    #expect(found == id)
  }

  mutating func expectWait(slot: Int, now: ContinuousClock.Instant) {
    guard case .wait = next(slot: slot, isReady: true, now: now) else {
      Issue.record("not waiting")
      return
    }
  }
}
