// DownloadQueueTests: tests of DownloadQueue, without sockets or clocks.

import Model
import TestSupport
import Testing

@testable import Downloading

@Suite(.onOwnThreads) struct DownloadQueueTests {
  private let start = ContinuousClock.now

  private func makeQueue(
    limit: Int = 3, perHost: Int = 2, silent: Int = 4, waiting: Int = 10,
    order: DownloadOrder = .fifo
  ) -> DownloadQueue {
    DownloadQueue(
      limit: limit, limitPerHost: perHost, silentLimit: silent, queueLimit: waiting,
      queueTimeout: .seconds(15),
      order: order)
  }

  /// The loads in the order in which they get the one place.
  private func drain(_ queue: inout DownloadQueue, running: Int) -> [Int] {
    var order = [running]
    while let last = order.last, case .start(let next)? = queue.remove(last).first {
      order.append(next)
    }
    return Array(order.dropFirst())
  }

  @Test func `loads start at once while there are places`() {
    var queue = makeQueue()
    #expect(queue.add(1, host: "a", priority: .normal, now: start) == [.start(1)])
    #expect(queue.add(2, host: "a", priority: .normal, now: start) == [.start(2)])
    #expect(queue.add(3, host: "b", priority: .normal, now: start) == [.start(3)])
    #expect(queue.runningCount == 3)
    #expect(queue.waitingCount == 0)
  }

  @Test func `a host with all its places taken keeps nobody else waiting`() {
    // Given
    var queue = makeQueue()
    _ = queue.add(1, host: "slow", priority: .normal, now: start)
    _ = queue.add(2, host: "slow", priority: .normal, now: start)
    // When
    #expect(queue.add(3, host: "slow", priority: .normal, now: start) == [])
    // Then
    #expect(queue.add(4, host: "other", priority: .normal, now: start) == [.start(4)])
  }

  @Test func `first come, first served, passing over hosts that are full`() {
    // Given: all three places taken, a b a b waiting
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

  @Test func `a full queue refuses, and one that is left lets the next in`() {
    var queue = makeQueue(limit: 1, waiting: 1)
    _ = queue.add(1, host: "a", priority: .normal, now: start)
    #expect(queue.add(2, host: "a", priority: .normal, now: start) == [])
    #expect(queue.add(3, host: "b", priority: .normal, now: start) == [.refuse(3)])
    // When: the waiting one is cancelled
    #expect(queue.remove(2) == [])
    // Then
    #expect(queue.add(4, host: "b", priority: .normal, now: start) == [])
    #expect(queue.remove(1) == [.start(4)])
  }

  @Test func `who has waited too long is turned away, in order`() {
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

  @Test func `a load not known is ignored`() {
    var queue = makeQueue(limit: 1)
    _ = queue.add(1, host: "a", priority: .normal, now: start)
    #expect(queue.remove(99) == [])
    #expect(queue.add(2, host: "a", priority: .normal, now: start) == [])
    #expect(queue.remove(1) == [.start(2)])
    #expect(queue.remove(1) == [])
    #expect(queue.runningCount == 1)
  }

  @Test(arguments: [(DownloadOrder.fifo, [3, 6, 4, 7, 2, 5]), (.lifo, [6, 3, 7, 4, 5, 2])])
  func `all of a higher priority go before any of a lower one`(
    _ order: DownloadOrder, _ expected: [Int]
  ) {
    var queue = makeQueue(limit: 1, order: order)
    let loads: [(Int, LoadPriority)] = [
      (1, .normal), (2, .low), (3, .high), (4, .normal), (5, .low), (6, .high), (7, .normal),
    ]
    for (id, priority) in loads { _ = queue.add(id, host: "a", priority: priority, now: start) }
    #expect(drain(&queue, running: 1) == expected)
  }

  @Test func `last in, first out passes over hosts that are full, too`() {
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

  @Test func `a waiting load is raised, never lowered, and counts as having come when it did`() {
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

  @Test func `a raised load is turned away when its own time is over`() {
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

  @Test func `while paused nothing begins, and everything after`() {
    // Given
    var queue = makeQueue(limit: 2, perHost: 2)
    _ = queue.add(1, host: "a", priority: .normal, now: start)
    _ = queue.add(2, host: "a", priority: .normal, now: start)
    _ = queue.add(3, host: "a", priority: .normal, now: start)
    // When
    queue.pause()
    // Then: a place that is freed stays free, and so it is for those who come
    #expect(queue.remove(1) == [])
    #expect(queue.add(4, host: "b", priority: .high, now: start + .seconds(5)) == [])
    #expect(queue.runningCount == 1)
    #expect(queue.expire(now: start + .seconds(15)) == [.expire(3)])
    #expect(queue.isPaused)
    #expect(queue.resume() == [.start(4)])
    #expect(!queue.isPaused)
  }

  @Test func `those who wait for one host can be taken out, of every priority`() {
    var queue = makeQueue(limit: 1)
    let loads: [(Int, String, LoadPriority)] = [
      (1, "a", .normal), (2, "a", .high), (3, "b", .normal), (4, "a", .low), (5, "a", .normal),
    ]
    for (id, host, priority) in loads {
      _ = queue.add(id, host: host, priority: priority, now: start)
    }
    #expect(queue.removeWaiting(for: "a") == [2, 4, 5])
    #expect(queue.removeWaiting(for: "a") == [])
    #expect(queue.remove(1) == [.start(3)])
  }

  @Test func `hosts that say nothing leave their places to others`() {
    var queue = makeQueue(limit: 2, silent: 2)
    for id in 1...2 { _ = queue.add(id, host: "dead\(id)", priority: .normal, now: start) }
    for id in 3...5 {
      #expect(queue.add(id, host: "live", priority: .normal, now: start) == [])
    }
    #expect(queue.silence(1) == [.start(3)])
    #expect(queue.silence(1) == [], "a second time says nothing new")
    #expect(queue.silence(2) == [.start(4)])
    // The number of silent loads is limited.
    #expect(queue.runningCount == 4)
    // Ending frees a silent one's place, too, for as many as may run in all.
    #expect(queue.remove(1) == [])
    #expect(queue.remove(3) == [.start(5)])
  }

  @Test func `a silent host begins nothing more until it has answered`() {
    var queue = makeQueue(limit: 9, perHost: 3)
    _ = queue.add(1, host: "slow", priority: .normal, now: start)
    _ = queue.silence(1)
    #expect(queue.add(2, host: "slow", priority: .high, now: start) == [])
    #expect(queue.add(3, host: "other", priority: .low, now: start) == [.start(3)])
    #expect(queue.answer(1, from: "slow") == [.start(2)])
    #expect(queue.add(4, host: "slow", priority: .normal, now: start) == [.start(4)])
    // And when all of its loads ended without an answer, the next finds out.
    for id in [1, 2, 4] { _ = queue.silence(id) }
    #expect(queue.add(5, host: "slow", priority: .normal, now: start) == [])
    #expect(queue.remove(1) == [] && queue.remove(2) == [])
    #expect(queue.remove(4) == [.start(5)])
  }

  @Test func `a host that answered is not blamed for what the load waits for then`() {
    var queue = makeQueue(limit: 1, silent: 2)
    _ = queue.add(1, host: "shortener", priority: .normal, now: start)
    #expect(queue.add(2, host: "shortener", priority: .normal, now: start) == [])
    #expect(queue.answer(1, from: "shortener") == [])
    // Its place is free all the same.
    #expect(queue.silence(1) == [.start(2)])
    #expect(queue.silentCount == 1)
    #expect(queue.answer(1, from: "target") == [])
    #expect(queue.silentCount == 0)
  }

  @Test func `a redirect's target answers for itself alone`() {
    // Given a load that was redirected to a host of which another load has waited for long
    var queue = makeQueue(limit: 9, perHost: 3)
    for (id, host) in [(1, "a"), (2, "a"), (3, "b")] {
      _ = queue.add(id, host: host, priority: .normal, now: start)
    }
    _ = queue.answer(1, from: "a")
    _ = queue.silence(2)
    _ = queue.silence(3)
    #expect(queue.add(4, host: "a", priority: .normal, now: start) == [])
    #expect(queue.add(5, host: "b", priority: .normal, now: start) == [])
    // Then
    #expect(queue.answer(1, from: "b") == [.start(5)])
    #expect(queue.answer(1, from: "a") == [.start(4)])
  }

  @Test func `a host is given another chance when nobody waits for its first word any more`() {
    var queue = makeQueue(limit: 9, perHost: 3)
    for id in 1...2 { _ = queue.add(id, host: "a", priority: .normal, now: start) }
    _ = queue.answer(1, from: "a")
    _ = queue.silence(2)
    #expect(queue.add(3, host: "a", priority: .normal, now: start) == [])
    #expect(queue.remove(2) == [.start(3)])
  }
}
