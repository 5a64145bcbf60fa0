// SlowHostQueueTests: how DownloadQueue treats silent and slow transfers and their hosts.

import Model
import TestSupport
import Testing

@testable import Downloading

@Suite(.onOwnThreads) struct SlowHostQueueTests {
  private let start = ContinuousClock.now

  @Test func `silent transfers release their slots to other loads`() {
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
    // The end of a silent load also frees a slot, up to the total limit.
    #expect(queue.remove(1) == [])
    #expect(queue.remove(3) == [.start(5)])
  }

  @Test func `slow transfers release their slots to other loads, until they recover`() {
    var queue = makeQueue(limit: 2, silent: 4)
    for id in 1...2 {
      _ = queue.add(id, host: "drip\(id)", priority: .normal, now: start)
      queue.recover(id)
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

  @Test func `a host of stalled transfers gets no more than any other host`() {
    var queue = makeQueue(limit: 3, perHost: 2)
    for id in 1...4 { _ = queue.add(id, host: "drip", priority: .normal, now: start) }
    for id in 1...2 {
      queue.recover(id)
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
      queue.recover(id)
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
      queue.silence(4) == [.giveUp(4), .start(5)], "a silent load is the slowest")
    #expect(queue.remove(5) == [] && queue.runningCount == 2)
  }

  @Test func `of equally slow transfers, the one that began first ends`() {
    var queue = makeQueue(limit: 1, silent: 1)
    for id in [7, 3] {
      _ = queue.add(id, host: "drip\(id)", priority: .normal, now: start)
      #expect(queue.silence(id) == [])
    }
    #expect(queue.add(8, host: "a", priority: .normal, now: start) == [.giveUp(7), .start(8)])
  }

  @Test func `no stalled transfer ends for a load that could not start`() {
    var queue = makeQueue(limit: 1, perHost: 1, silent: 1)
    for id in 1...2 {
      _ = queue.add(id, host: "drip\(id)", priority: .normal, now: start)
      queue.recover(id)
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
    queue.recover(1)
    _ = queue.slow(1, rate: 1)
    queue.recover(1)
    #expect(queue.slowCount == 0)
    _ = queue.silence(1)
    #expect(queue.slow(1, rate: 1) == [])
    #expect(queue.slowCount == 0 && queue.silentCount == 1)
  }
}
