// DownloadQueueTests: tests of DownloadQueue, without sockets or clocks.

import Model
import TestSupport
import Testing

@testable import Downloading

/// Makes a small queue for tests.
func makeQueue(
  limit: Int = 3, perHost: Int = 2, share: Int = 1, silent: Int = 4, waiting: Int = 10,
  order: DownloadOrder = .fifo
) -> DownloadQueue {
  DownloadQueue(
    DownloadQueue.Limits(
      total: limit, perHost: perHost, share: share, silent: silent, waiting: waiting,
      timeout: .seconds(15)), order: order)
}

@Suite(.onOwnThreads) struct DownloadQueueTests {
  private let start = ContinuousClock.now

  /// Returns the loads in the order in which they get the only slot.
  private func drain(_ queue: inout DownloadQueue, running: Int) -> [Int] {
    var order = [running]
    while let last = order.last, case .start(let next)? = queue.remove(last).first {
      order.append(next)
    }
    return Array(order.dropFirst())
  }

  @Test func `loads start at once while slots are free`() {
    var queue = makeQueue()
    #expect(queue.add(1, host: "a", priority: .normal, now: start) == [.start(1)])
    #expect(queue.add(2, host: "a", priority: .normal, now: start) == [.start(2)])
    #expect(queue.add(3, host: "b", priority: .normal, now: start) == [.start(3)])
    #expect(queue.runningCount == 3)
    #expect(queue.waitingCount == 0)
  }

  @Test func `a host at its limit does not block other hosts`() {
    // Given
    var queue = makeQueue()
    _ = queue.add(1, host: "slow", priority: .normal, now: start)
    _ = queue.add(2, host: "slow", priority: .normal, now: start)
    // When
    #expect(queue.add(3, host: "slow", priority: .normal, now: start) == [])
    // Then
    #expect(queue.add(4, host: "other", priority: .normal, now: start) == [.start(4)])
  }

  @Test func `waiting loads start in order of arrival, skipping hosts at their limit`() {
    // Given: all three slots in use; a, b, a and b waiting
    var queue = makeQueue(limit: 3, perHost: 2)
    for (id, host) in [(1, "a"), (2, "a"), (3, "b"), (4, "a"), (5, "b"), (6, "a"), (7, "b")] {
      _ = queue.add(id, host: host, priority: .normal, now: start)
    }
    #expect(queue.waitingCount == 4)
    // Then
    #expect(queue.remove(3) == [.start(5)])
    #expect(queue.remove(5) == [.start(7)])
    #expect(queue.remove(1) == [.start(4)])
    #expect(queue.remove(7) == [])
    #expect(queue.remove(2) == [.start(6)])
  }

  @Test func `a full queue refuses a load, and a cancelled load frees its position`() {
    var queue = makeQueue(limit: 1, waiting: 1)
    _ = queue.add(1, host: "a", priority: .normal, now: start)
    #expect(queue.add(2, host: "a", priority: .normal, now: start) == [])
    #expect(queue.add(3, host: "b", priority: .normal, now: start) == [.refuse(3)])
    // When: the waiting load is cancelled
    #expect(queue.remove(2) == [])
    // Then
    #expect(queue.add(4, host: "b", priority: .normal, now: start) == [])
    #expect(queue.remove(1) == [.start(4)])
  }

  @Test func `loads that exceed the queue time-out expire in order`() {
    // Given
    var queue = makeQueue(limit: 1)
    _ = queue.add(1, host: "a", priority: .normal, now: start)
    _ = queue.add(2, host: "a", priority: .normal, now: start)
    _ = queue.add(3, host: "a", priority: .normal, now: start + .seconds(1))
    #expect(queue.nextDeadline == start + .seconds(15))
    // Then
    #expect(queue.expire(now: start + .seconds(14)) == [])
    #expect(queue.expire(now: start + .seconds(15)) == [.expire(2)])
    #expect(queue.nextDeadline == start + .seconds(16))
    #expect(queue.remove(1) == [.start(3)])
    #expect(queue.expire(now: start + .seconds(99)) == [])
    #expect(queue.nextDeadline == nil)
  }

  @Test func `an unknown load is ignored`() {
    var queue = makeQueue(limit: 1)
    _ = queue.add(1, host: "a", priority: .normal, now: start)
    #expect(queue.remove(99) == [])
    #expect(queue.add(2, host: "a", priority: .normal, now: start) == [])
    #expect(queue.remove(1) == [.start(2)])
    #expect(queue.remove(1) == [])
    #expect(queue.runningCount == 1)
  }

  @Test(arguments: [(DownloadOrder.fifo, [3, 6, 4, 7, 2, 5]), (.lifo, [6, 3, 7, 4, 5, 2])])
  func `loads of a higher priority start first`(
    order: DownloadOrder, expected: [Int]
  ) {
    var queue = makeQueue(limit: 1, order: order)
    let loads: [(Int, LoadPriority)] = [
      (1, .normal), (2, .low), (3, .high), (4, .normal), (5, .low), (6, .high), (7, .normal),
    ]
    for (id, priority) in loads { _ = queue.add(id, host: "a", priority: priority, now: start) }
    #expect(drain(&queue, running: 1) == expected)
  }

  @Test func `last-in, first-out order skips hosts at their limit`() {
    // Given
    var queue = makeQueue(limit: 2, perHost: 1, order: .lifo)
    for (id, host) in [(1, "a"), (2, "b"), (3, "a"), (4, "b"), (5, "a")] {
      _ = queue.add(id, host: host, priority: .normal, now: start)
    }
    // Then
    #expect(queue.remove(2) == [.start(4)])
    #expect(queue.remove(1) == [.start(5)])
    #expect(queue.remove(4) == [])
    #expect(queue.remove(5) == [.start(3)])
  }

  @Test func `a waiting load's priority can be raised, never lowered, and its arrival order stays`()
  {
    // Given
    var queue = makeQueue(limit: 1)
    let loads: [(Int, LoadPriority)] = [
      (1, .normal), (2, .low), (3, .normal), (4, .high), (5, .low), (6, .normal),
    ]
    for (id, priority) in loads { _ = queue.add(id, host: "a", priority: priority, now: start) }
    // When
    queue.raise(2, to: .high)
    queue.raise(5, to: .normal)
    queue.raise(3, to: .low)
    queue.raise(1, to: .high)
    queue.raise(99, to: .high)
    // Then
    #expect(queue.waitingCount == 5)
    #expect(drain(&queue, running: 1) == [2, 4, 3, 5, 6])
  }

  @Test func `a raised load expires at its own deadline`() {
    var queue = makeQueue(limit: 1)
    _ = queue.add(1, host: "a", priority: .normal, now: start)
    for id in 2...4 {
      _ = queue.add(id, host: "a", priority: .low, now: start + .seconds(id))
    }
    queue.raise(3, to: .high)
    #expect(queue.nextDeadline == start + .seconds(17))
    #expect(queue.expire(now: start + .seconds(18)) == [.expire(2), .expire(3)])
    #expect(queue.nextDeadline == start + .seconds(19))
  }

  @Test func `while the queue is paused no load starts, and resuming starts the waiting ones`() {
    // Given
    var queue = makeQueue(limit: 2, perHost: 2)
    _ = queue.add(1, host: "a", priority: .normal, now: start)
    _ = queue.add(2, host: "a", priority: .normal, now: start)
    _ = queue.add(3, host: "a", priority: .normal, now: start)
    // When
    queue.pause()
    // Then: a freed slot stays free, also for new loads
    #expect(queue.remove(1) == [])
    #expect(queue.add(4, host: "b", priority: .high, now: start + .seconds(5)) == [])
    #expect(queue.runningCount == 1)
    #expect(queue.expire(now: start + .seconds(15)) == [.expire(3)])
    #expect(queue.isPaused)
    #expect(queue.resume() == [.start(4)])
    #expect(!queue.isPaused)
  }
}
