// ClientTurnTests: one client's jobs and those of others.

import Model
import TestSupport
import Testing

@testable import ImagingPool

@Suite(.onOwnThreads) struct ClientTurnTests {
  private let now = ContinuousClock.now
  private let greedy = LoadClient.network(.v4(1))
  private let modest = LoadClient.network(.v4(2))

  private func board(slots: Int, limit: Int) -> JobScheduler<String> {
    var board = JobScheduler<String>(slots: slots, limit: limit)
    for _ in 0..<slots { board.enter() }
    return board
  }

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
