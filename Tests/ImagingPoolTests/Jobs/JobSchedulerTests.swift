// JobSchedulerTests: decisions of the scheduler beyond those that `JobBoardModelTests` compares
// with a model.

import Core
import TestSupport
import Testing

@testable import ImagingPool

@Suite(.onOwnThreads) struct JobSchedulerTests {
  private let now = ContinuousClock.now
  private let greedy = LoadClient.network(.v4(1))
  private let modest = LoadClient.network(.v4(2))

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

  @Test func `a job has the cores that no other job has or waits for`() {
    // Given
    var board = board(slots: 4, limit: 9)
    for slot in 0..<4 { board.expectWait(slot: slot, now: now) }
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

  // MARK: Clients

  @Test(arguments: [1, 2, 8], LoadPriority.allCases)
  func `a client's job starts after one of another client with many before it`(
    slots: Int, priority: LoadPriority
  ) {
    // Given a job of the greedy client in each slot, and many that wait
    var board = board(slots: slots, limit: 400)
    for id in 0..<90 as Range<UInt64> {
      _ = board.submit(id, job: "", clients: [greedy], priority: priority)
    }
    for slot in 0..<slots { board.expectJob(UInt64(slot), slot: slot, now: now) }
    // When
    _ = board.submit(100, job: "", clients: [modest], priority: priority)
    _ = board.finish(0)
    // Then
    board.expectJob(100, slot: 0, now: now)
  }

  @Test func `a high priority of a client above its share does not count`() {
    var board = board(slots: 2, limit: 400)
    for id in 0..<9 as Range<UInt64> {
      _ = board.submit(id, job: "", clients: [greedy], priority: .high)
    }
    for slot in 0..<2 { board.expectJob(UInt64(slot), slot: slot, now: now) }
    _ = board.submit(100, job: "", clients: [modest], priority: .normal)
    _ = board.finish(1)
    board.expectJob(100, slot: 1, now: now)
  }

  @Test func `a lower priority has a turn after eight jobs of a higher one`() {
    var board = board(slots: 1, limit: 400)
    board.expectAdmitted(100, job: "", priority: .low, wake: nil)
    for id in 0..<20 as Range<UInt64> {
      board.expectAdmitted(id, job: "", priority: .high, wake: nil)
    }
    for id in [0, 1, 2, 3, 4, 5, 6, 7, 100, 8] as [UInt64] {
      board.expectJob(id, slot: 0, now: now)
      _ = board.finish(id)
    }
  }

  @Test func `a client's expensive jobs let those of others take turns`() {
    var board = board(slots: 1, limit: 400)
    for id in 0..<3 as Range<UInt64> {
      _ = board.submit(id, job: "", clients: [greedy], priority: .normal, isExpensive: true)
    }
    board.expectJob(0, slot: 0, now: now)
    _ = board.submit(100, job: "", clients: [modest], priority: .normal, isExpensive: true)
    _ = board.finish(0)
    for id in [100, 1, 2] as [UInt64] {
      board.expectJob(id, slot: 0, now: now)
      _ = board.finish(id)
    }
  }

  @Test func `a client has a quarter of the queue, and then its own 429`() {
    // Given a full part
    var board = board(slots: 1, limit: 8)
    for id in 0..<2 as Range<UInt64> {
      _ = board.submit(id, job: "", clients: [greedy], priority: .normal)
    }
    // Then
    let refused = board.submit(2, job: "", clients: [greedy], priority: .high)
    guard case .refused(.rateLimited(by: .imagingQueue, retryAfter: 1)) = refused else {
      Issue.record("\(refused)")
      return
    }
    // Others have room, also for what the client waits for, too.
    for (id, clients) in [[modest], [greedy, modest], [.unlimited], [.background]].enumerated() {
      guard case .waits = board.submit(UInt64(3 + id), job: "", clients: clients, priority: .low)
      else {
        Issue.record("\(clients) refused")
        return
      }
    }
    // A job that ends its wait makes room.
    _ = board.cancel(0)
    guard case .waits = board.submit(9, job: "", clients: [greedy], priority: .low) else {
      Issue.record("refused")
      return
    }
  }

  @Test func `a job of several clients starts when it is the turn of one`() {
    var board = board(slots: 1, limit: 400)
    for id in 0..<9 as Range<UInt64> {
      _ = board.submit(id, job: "", clients: [greedy], priority: .normal)
    }
    board.expectJob(0, slot: 0, now: now)
    // When
    board.join(7, client: modest)
    board.join(99, client: modest)
    _ = board.finish(0)
    // Then
    for id in [7, 1, 2] as [UInt64] {
      board.expectJob(id, slot: 0, now: now)
      _ = board.finish(id)
    }
    #expect(board.waitingCount == 5)
  }
}

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
