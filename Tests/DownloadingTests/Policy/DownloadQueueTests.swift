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

  @Test func `the waiting loads of one host can be removed at every priority`() {
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

  @Test func `silent transfers release their slots to other loads`() {
    var queue = makeQueue(limit: 2, silent: 2)
    for id in 1...2 { _ = queue.add(id, host: "dead\(id)", priority: .normal, now: start) }
    for id in 3...5 {
      #expect(queue.add(id, host: "live", priority: .normal, now: start) == [])
    }
    #expect(queue.silence(1, isAlive: false) == [.start(3)])
    #expect(queue.silence(1, isAlive: false) == [], "a second time says nothing new")
    #expect(queue.silence(2, isAlive: false) == [.start(4)])
    // The number of silent loads is limited.
    #expect(queue.runningCount == 4)
    // The end of a silent load also frees a slot, up to the total limit.
    #expect(queue.remove(1) == [])
    #expect(queue.remove(3) == [.start(5)])
  }

  @Test func `a silent host starts no further load until it responds`() {
    var queue = makeQueue(limit: 9, perHost: 3)
    _ = queue.add(1, host: "slow", priority: .normal, now: start)
    _ = queue.silence(1, isAlive: false)
    #expect(queue.add(2, host: "slow", priority: .high, now: start) == [])
    #expect(queue.add(3, host: "other", priority: .low, now: start) == [.start(3)])
    #expect(queue.answer(1, from: "slow") == [.start(2)])
    #expect(queue.add(4, host: "slow", priority: .normal, now: start) == [.start(4)])
    // When all of its loads have ended without a response, the next one is tried.
    for id in [1, 2, 4] { _ = queue.silence(id, isAlive: false) }
    #expect(queue.add(5, host: "slow", priority: .normal, now: start) == [])
    #expect(queue.remove(1) == [] && queue.remove(2) == [])
    #expect(queue.remove(4) == [.start(5)])
  }

  @Test func `after its response, a host is not blamed for later silence of the load`() {
    var queue = makeQueue(limit: 1, silent: 2)
    _ = queue.add(1, host: "shortener", priority: .normal, now: start)
    #expect(queue.add(2, host: "shortener", priority: .normal, now: start) == [])
    #expect(queue.answer(1, from: "shortener") == [])
    // Its slot is freed nevertheless.
    #expect(queue.silence(1, isAlive: false) == [.start(2)])
    #expect(queue.silentCount == 1)
    #expect(queue.answer(1, from: "target") == [])
    #expect(queue.silentCount == 0)
  }

  @Test func `a response from a redirect's target counts for the target only`() {
    // Given a load that was redirected to a host for which another load has waited long
    var queue = makeQueue(limit: 9, perHost: 3)
    for (id, host) in [(1, "a"), (2, "a"), (3, "b")] {
      _ = queue.add(id, host: host, priority: .normal, now: start)
    }
    _ = queue.answer(1, from: "a")
    for id in 1...3 { _ = queue.silence(id, isAlive: false) }
    #expect(queue.add(4, host: "a", priority: .normal, now: start) == [])
    #expect(queue.add(5, host: "b", priority: .normal, now: start) == [])
    // Then
    #expect(queue.answer(1, from: "b") == [.start(5)])
    #expect(queue.answer(1, from: "a") == [.start(4)])
  }

  @Test func `slow transfers release their slots to other loads, until they recover`() {
    var queue = makeQueue(limit: 2, silent: 4)
    for id in 1...2 {
      _ = queue.add(id, host: "drip\(id)", priority: .normal, now: start)
      _ = queue.answer(id, from: "drip\(id)")
    }
    for id in 3...5 {
      #expect(queue.add(id, host: "fast\(id)", priority: .normal, now: start) == [])
    }
    #expect(queue.slow(1, rate: 3) == [.start(3)])
    #expect(queue.slow(1, rate: 1) == [], "a second time says nothing new")
    #expect(queue.slowCount == 1 && queue.silentCount == 0)
    queue.recover(1)
    #expect(queue.slowCount == 0)
    // Three loads count now, one more than the limit.
    #expect(queue.remove(3) == [])
    #expect(queue.remove(2) == [.start(4)])
    #expect(queue.slow(99, rate: 0) == [])
  }

  @Test func `a slow host gets no more transfers than any other host`() {
    var queue = makeQueue(limit: 3, perHost: 2)
    for id in 1...4 { _ = queue.add(id, host: "drip", priority: .normal, now: start) }
    for id in 1...2 {
      _ = queue.answer(id, from: "drip")
      #expect(queue.slow(id, rate: 0) == [])
    }
    #expect(queue.runningCount == 2)
    #expect(queue.remove(1) == [.start(3)])
  }

  @Test func `beyond the limit of stalled transfers, the slowest one ends for a waiting load`() {
    // Given: three places, one for a load that counts
    var queue = makeQueue(limit: 1, silent: 2)
    for (id, rate) in [(1, 9), (2, 2), (3, 4)] {
      _ = queue.add(id, host: "drip\(id)", priority: .normal, now: start)
      _ = queue.answer(id, from: "drip\(id)")
      #expect(queue.slow(id, rate: rate) == [])
    }
    #expect(queue.runningCount == 3)
    // Then
    let add = queue.add(4, host: "a", priority: .normal, now: start)
    #expect(add == [.giveUp(2), .start(4)])
    #expect(queue.remove(2) == [], "it is gone already")
    // The load that counts has the only place.
    #expect(queue.add(5, host: "b", priority: .normal, now: start) == [])
    #expect(
      queue.silence(4, isAlive: false) == [.giveUp(4), .start(5)], "a silent load is the slowest")
    #expect(queue.remove(5) == [] && queue.runningCount == 2)
  }

  @Test func `of equally slow transfers, the one that began first ends`() {
    var queue = makeQueue(limit: 1, silent: 1)
    for id in [7, 3] {
      _ = queue.add(id, host: "drip\(id)", priority: .normal, now: start)
      #expect(queue.silence(id, isAlive: false) == [])
    }
    #expect(queue.add(8, host: "a", priority: .normal, now: start) == [.giveUp(7), .start(8)])
  }

  @Test func `no stalled transfer ends for a load that could not start`() {
    var queue = makeQueue(limit: 1, perHost: 1, silent: 1)
    for id in 1...2 {
      _ = queue.add(id, host: "drip\(id)", priority: .normal, now: start)
      _ = queue.answer(id, from: "drip\(id)")
      _ = queue.slow(id, rate: 1)
    }
    // Its host is full.
    #expect(queue.add(3, host: "drip1", priority: .high, now: start) == [])
    queue.pause()
    #expect(queue.add(4, host: "a", priority: .high, now: start) == [])
    #expect(queue.runningCount == 2)
    #expect(queue.resume() == [.giveUp(1), .start(4)])
  }

  @Test func `a slow transfer whose next host is silent is only silent`() {
    var queue = makeQueue(limit: 1, silent: 4)
    _ = queue.add(1, host: "a", priority: .normal, now: start)
    _ = queue.answer(1, from: "a")
    _ = queue.slow(1, rate: 1)
    #expect(queue.answer(1, from: "a") == [] && queue.slowCount == 0)
    _ = queue.silence(1, isAlive: false)
    #expect(queue.slow(1, rate: 1) == [])
    #expect(queue.slowCount == 0 && queue.silentCount == 1)
  }

  @Test func `a host is tried again when no load waits for its first response`() {
    var queue = makeQueue(limit: 9, perHost: 3)
    for id in 1...2 { _ = queue.add(id, host: "a", priority: .normal, now: start) }
    _ = queue.answer(1, from: "a")
    _ = queue.slow(1, rate: 0)
    _ = queue.silence(2, isAlive: false)
    #expect(queue.add(3, host: "a", priority: .normal, now: start) == [])
    #expect(queue.remove(2) == [.start(3)])
  }

  @Test func `a host that sends to one load is not silent because of another`() {
    var queue = makeQueue(limit: 9, perHost: 9)
    for id in 1...3 { _ = queue.add(id, host: "a", priority: .normal, now: start) }
    _ = queue.answer(1, from: "a")
    _ = queue.silence(2, isAlive: false)
    #expect(queue.silentCount == 1)
    #expect(queue.add(4, host: "a", priority: .normal, now: start) == [.start(4)])
    // When it no longer sends enough
    _ = queue.slow(1, rate: 0)
    _ = queue.silence(3, isAlive: false)
    // Then
    #expect(queue.add(5, host: "a", priority: .normal, now: start) == [])
    #expect(queue.silentCount == 2)
  }

  @Test func `a host that has just responded is not silent because of one load`() {
    var queue = makeQueue(limit: 9, perHost: 9)
    for id in 1...2 { _ = queue.add(id, host: "a", priority: .normal, now: start) }
    #expect(queue.silence(1, isAlive: true) == [])
    #expect(queue.add(3, host: "a", priority: .normal, now: start) == [.start(3)])
    // When its response was too long ago
    _ = queue.silence(2, isAlive: false)
    // Then
    #expect(queue.add(4, host: "a", priority: .normal, now: start) == [])
  }

  @Test func `what one host sends says nothing about another`() {
    // Given a load of host a that was redirected to b
    var queue = makeQueue(limit: 9, perHost: 9)
    for (id, host) in [(1, "a"), (2, "a"), (3, "b")] {
      _ = queue.add(id, host: host, priority: .normal, now: start)
    }
    _ = queue.answer(1, from: "a")
    _ = queue.answer(1, from: "b")
    // When
    for id in 2...3 { _ = queue.silence(id, isAlive: false) }
    // Then
    #expect(queue.add(4, host: "a", priority: .normal, now: start) == [])
    #expect(queue.add(5, host: "b", priority: .normal, now: start) == [.start(5)])
    // When its load has ended
    _ = queue.remove(1)
    _ = queue.silence(5, isAlive: false)
    #expect(queue.add(6, host: "b", priority: .normal, now: start) == [])
  }
}
