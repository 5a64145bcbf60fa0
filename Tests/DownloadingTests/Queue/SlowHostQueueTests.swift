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
