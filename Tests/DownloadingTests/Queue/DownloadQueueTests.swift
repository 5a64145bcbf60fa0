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
}
