// BackgroundQueueTests: tests the order and bounds of background work.

import Core
import TestSupport
import Testing

@testable import Managing

struct BackgroundQueueTests {
  private typealias Queue = BackgroundQueue<Int>

  private let now = UnixTime(seconds: 1_000)

  private func key(_ number: Int) throws -> CacheKey {
    CacheKey(source: try SourceURL(parsing: "http://origin/\(number).jpg"))
  }

  @Test func `work on a variant is queued once, and again after its end`() throws {
    var queue = Queue(atOnce: 1, limit: 9)
    let key = try key(1)
    #expect(!queue.knows(key, now: now))
    let work = try #require(queue.add(1, for: key, now: now).start)
    let second = queue.add(1, for: key, now: now)
    #expect(second.isKept && second.start?.key == nil)
    #expect(queue.knows(key, now: now))
    #expect(queue.end(work, .done, now: now)?.key == nil)
    #expect(queue.count == 0 && !queue.knows(key, now: now))
    #expect(queue.add(1, for: key, now: now).start?.item == 1, "it may have been evicted")
  }

  @Test func `failed work is not tried again before its failure time ends`() throws {
    var queue = Queue(atOnce: 1, limit: 9)
    let key = try key(1)
    let work = try #require(queue.add(1, for: key, now: now).start)
    _ = queue.end(work, .failed, now: now)
    let last = UnixTime(seconds: now.seconds + Queue.failureTime - 1)
    #expect(queue.knows(key, now: last))
    #expect(queue.add(1, for: key, now: last).start?.item == nil)
    #expect(queue.add(1, for: key, now: UnixTime(seconds: last.seconds + 1)).start?.item == 1)
  }

  @Test func `the number of remembered failures is limited, and new ones replace old ones`() throws
  {
    var queue = Queue(atOnce: 1, limit: 9)
    for number in 0...20 {
      let key = try key(number)
      _ = queue.end(try #require(queue.add(number, for: key, now: now).start), .failed, now: now)
      #expect(queue.knows(key, now: now))
    }
    #expect(!queue.knows(try key(0), now: now))
  }

  @Test func `work that is always delayed is dropped in the end`() throws {
    var queue = Queue(atOnce: 1, limit: 9)
    let key = try key(1)
    let dropped = Count()
    var next = queue.add(1, for: key, now: now).start
    for delays in 0...Queue.maximumDelays {
      let work = try #require(next)
      #expect(work.delays == delays && dropped.value == 0)
      next = queue.end(work, .delayed(orElse: { dropped.add() }), now: now)
    }
    #expect(next?.item == nil && dropped.value == 1 && queue.count == 0)
    #expect(queue.add(1, for: key, now: now).start?.delays == 0)
  }

  @Test(arguments: [1, 3], [1, 2, 3] as [UInt64])
  func `a few run at a time, each once, in order, as in a simple model`(
    atOnce: Int, seed: UInt64
  ) throws {
    var random = SeededGenerator(seed: seed)
    let limit = 64
    var queue = Queue(atOnce: atOnce, limit: limit)
    var running: [Queue.Work] = []
    var waiting: [Int] = []
    let keys = try (0..<300).map { try key($0) }
    var wasFull = false
    for step in 0..<6_000 {
      // The queue fills at first, then empties and fills again.
      let adds = step / 1_500 % 2 == 0 ? 9 : 3
      if running.isEmpty || Int.random(in: 0..<10, using: &random) < adds {
        let item = Int.random(in: 0..<keys.count, using: &random)
        let (isKept, start) = queue.add(item, for: keys[item], now: now)
        if running.contains(where: { $0.item == item }) || waiting.contains(item) {
          #expect(isKept && start?.item == nil)
        } else if waiting.count == limit {
          #expect(!isKept && start?.item == nil)
          wasFull = true
        } else if running.count < atOnce {
          #expect(isKept && start?.item == item)
          running += start.map { [$0] } ?? []
        } else {
          #expect(isKept && start?.item == nil)
          waiting.append(item)
        }
      } else {
        let work = running.remove(at: Int.random(in: 0..<running.count, using: &random))
        let isDelayed = Int.random(in: 0..<4, using: &random) == 0
        let next = queue.end(work, isDelayed ? .delayed(orElse: {}) : .done, now: now)
        if isDelayed, work.delays < Queue.maximumDelays { waiting.append(work.item) }
        #expect(next?.item == waiting.first)
        if let next {
          waiting.removeFirst()
          running.append(next)
        }
      }
      #expect(queue.count == running.count + waiting.count)
    }
    #expect(wasFull)
  }
}
