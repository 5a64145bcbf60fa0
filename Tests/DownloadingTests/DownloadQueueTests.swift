// Tests of DownloadQueue: no sockets, no clocks.

import TestSupport
import Testing

@testable import Downloading

struct DownloadQueueTests {
  private let start = ContinuousClock.now

  private func makeQueue(
    limit: Int = 3, perHost: Int = 2, waiting: Int = 10
  ) -> DownloadQueue {
    DownloadQueue(
      limit: limit, limitPerHost: perHost, queueLimit: waiting, queueTimeout: .seconds(15))
  }

  @Test func `loads start at once while there are places`() {
    var queue = makeQueue()
    #expect(queue.add(1, host: "a", now: start) == [.start(1)])
    #expect(queue.add(2, host: "a", now: start) == [.start(2)])
    #expect(queue.add(3, host: "b", now: start) == [.start(3)])
    #expect(queue.runningCount == 3)
    #expect(queue.waitingCount == 0)
  }

  @Test func `a host with all its places taken keeps nobody else waiting`() {
    // Given
    var queue = makeQueue()
    _ = queue.add(1, host: "slow", now: start)
    _ = queue.add(2, host: "slow", now: start)
    // When
    #expect(queue.add(3, host: "slow", now: start) == [])
    // Then
    #expect(queue.add(4, host: "other", now: start) == [.start(4)])
  }

  @Test func `first come, first served, passing over hosts that are full`() {
    // Given: all three places taken, a b a b waiting
    var queue = makeQueue(limit: 3, perHost: 2)
    for (id, host) in [(1, "a"), (2, "a"), (3, "b"), (4, "a"), (5, "b"), (6, "a"), (7, "b")] {
      _ = queue.add(id, host: host, now: start)
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
    _ = queue.add(1, host: "a", now: start)
    #expect(queue.add(2, host: "a", now: start) == [])
    #expect(queue.add(3, host: "b", now: start) == [.refuse(3)])
    // When: the waiting one is cancelled
    #expect(queue.remove(2) == [])
    // Then
    #expect(queue.add(4, host: "b", now: start) == [])
    #expect(queue.remove(1) == [.start(4)])
  }

  @Test func `who has waited too long is turned away, in order`() {
    // Given
    var queue = makeQueue(limit: 1)
    _ = queue.add(1, host: "a", now: start)
    _ = queue.add(2, host: "a", now: start)
    _ = queue.add(3, host: "a", now: start + .seconds(1))
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
    _ = queue.add(1, host: "a", now: start)
    #expect(queue.remove(99) == [])
    #expect(queue.add(2, host: "a", now: start) == [])
    #expect(queue.remove(1) == [.start(2)])
    #expect(queue.remove(1) == [])
    #expect(queue.runningCount == 1)
  }

  @Test func `a random schedule keeps every bound, loses nobody and answers nobody twice`() {
    var random = SeededGenerator(seed: 20_261_121)
    var queue = makeQueue(limit: 8, perHost: 3, waiting: 20)
    var hosts: [Int: String] = [:]
    var running: Set<Int> = []
    var waiting: Set<Int> = []
    var now = start

    func take(_ actions: [DownloadQueue.Action]) {
      for action in actions {
        switch action {
        case .start(let id):
          #expect(waiting.remove(id) != nil)
          #expect(running.insert(id).inserted)
        case .refuse(let id), .expire(let id):
          #expect(waiting.remove(id) != nil)
        }
      }
    }

    for id in 1...20_000 {
      now += .milliseconds(Int.random(in: 0...400, using: &random))
      switch Int.random(in: 0..<10, using: &random) {
      case 0..<5:
        let host = "h\(Int.random(in: 0..<6, using: &random))"
        hosts[id] = host
        waiting.insert(id)
        take(queue.add(id, host: host, now: now))
      case 5..<8:
        guard let ended = running.sorted().randomElement(using: &random) else { continue }
        running.remove(ended)
        take(queue.remove(ended))
      case 8:
        guard let gone = waiting.sorted().randomElement(using: &random) else { continue }
        waiting.remove(gone)
        take(queue.remove(gone))
      default:
        take(queue.expire(now: now))
      }
      let perHost = Dictionary(grouping: running) { hosts[$0] ?? "" }.mapValues(\.count)
      #expect(running.count <= 8 && waiting.count <= 20)
      #expect(perHost.values.allSatisfy { $0 <= 3 })
      #expect(queue.runningCount == running.count && queue.waitingCount == waiting.count)
      // Nobody waits who could run.
      let idle = waiting.contains { perHost[hosts[$0] ?? "", default: 0] < 3 }
      #expect(running.count == 8 || !idle)
    }
    // At the end everyone gets a turn.
    while let ended = running.min() {
      running.remove(ended)
      take(queue.remove(ended))
    }
    #expect(waiting.isEmpty)
  }
}
