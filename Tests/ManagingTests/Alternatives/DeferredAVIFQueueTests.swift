// DeferredAVIFQueueTests: tests the order and bounds of background AVIFs.

import Model
import TestSupport
import Testing

@testable import Managing

struct DeferredAVIFQueueTests {
  private let now = UnixTime(seconds: 1_000)

  private func item(_ number: Int) throws -> DeferredAVIFQueue.Item {
    let url = try SourceURL(parsing: "http://origin/\(number).jpg")
    return DeferredAVIFQueue.Item(
      request: ImageRequest(source: url, transform: Transform()), generation: 0)
  }

  @Test func `an AVIF is queued once, regardless of the number of requests`() throws {
    var backlog = DeferredAVIFQueue(atOnce: 1)
    let item = try item(1)
    #expect(!backlog.knows(item.request.key, now: now))
    #expect(backlog.add(item, now: now) == item)
    #expect(backlog.add(item, now: now) == nil)
    #expect(backlog.knows(item.request.key, now: now))
    #expect(backlog.end(item, isFailure: false, now: now) == nil)
    #expect(backlog.count == 0)
    #expect(!backlog.knows(item.request.key, now: now))
    #expect(backlog.add(item, now: now) == item, "it may have been evicted")
  }

  @Test func `a failed AVIF is not retried before its failure time ends`() throws {
    var backlog = DeferredAVIFQueue(atOnce: 1)
    let item = try item(1)
    _ = backlog.add(item, now: now)
    _ = backlog.end(item, isFailure: true, now: now)
    let last = UnixTime(seconds: now.seconds + DeferredAVIFQueue.failureTime - 1)
    #expect(backlog.knows(item.request.key, now: last))
    #expect(backlog.add(item, now: last) == nil)
    #expect(backlog.add(item, now: UnixTime(seconds: last.seconds + 1)) == item)
  }

  @Test func `the number of remembered failures is limited, and new ones replace old ones`() throws
  {
    var backlog = DeferredAVIFQueue(atOnce: 1)
    for number in 0...(2 * DeferredAVIFQueue.limit) {
      let item = try item(number)
      #expect(backlog.add(item, now: now) == item)
      _ = backlog.end(item, isFailure: true, now: now)
      #expect(backlog.knows(item.request.key, now: now))
    }
  }

  @Test(arguments: [1, 3])
  func `the limits for running and waiting AVIFs hold, and waiting ones start in order`(
    atOnce: Int
  ) throws {
    var random = SeededGenerator(seed: UInt64(atOnce))
    var backlog = DeferredAVIFQueue(atOnce: atOnce)
    // The model: running and waiting items in order.
    var running: [DeferredAVIFQueue.Item] = []
    var waiting: [DeferredAVIFQueue.Item] = []
    var known: Set<CacheKey> = []
    let items = try (0..<4_000).map { try item($0) }
    var maximumWaiting = 0
    for step in 0..<20_000 {
      // The queue fills at first, then empties and fills again.
      let item = items[Int.random(in: 0..<items.count, using: &random)]
      if running.isEmpty || Int.random(in: 0..<10, using: &random) < (step / 5_000 % 2 == 0 ? 8 : 3)
      {
        let begun = backlog.add(item, now: now)
        let isNew = !known.contains(item.request.key)
        if isNew, running.count < atOnce {
          running.append(item)
          known.insert(item.request.key)
          #expect(begun == item)
        } else {
          #expect(begun == nil)
          if isNew, waiting.count < DeferredAVIFQueue.limit {
            waiting.append(item)
            known.insert(item.request.key)
          }
        }
      } else {
        let ended = running.remove(at: Int.random(in: 0..<running.count, using: &random))
        known.remove(ended.request.key)
        let next = backlog.end(ended, isFailure: false, now: now)
        #expect(next == waiting.first)
        if let next {
          waiting.removeFirst()
          running.append(next)
        }
      }
      #expect(backlog.count == running.count + waiting.count)
      maximumWaiting = max(maximumWaiting, waiting.count)
    }
    #expect(maximumWaiting == DeferredAVIFQueue.limit)
  }
}
