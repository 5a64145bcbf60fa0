// DownloadQueueTests: tests of DownloadQueue, without sockets or clocks.

import Core
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
}
