// RecompressionQueueTests: the order and bounds of variants that wait for recompression.

import Model
import TestSupport
import Testing

@testable import Managing

struct RecompressionQueueTests {
  private static func item(_ number: Int) throws -> RecompressionQueue.Item {
    let url = try SourceURL(parsing: "http://origin/\(number).jpg")
    return RecompressionQueue.Item(key: CacheKey(source: url), etag: "\"\(number)\"")
  }

  @Test func `an item that is always delayed is dropped in the end`() throws {
    var queue = RecompressionQueue()
    var next = queue.add(try Self.item(1)).start
    for delays in 0..<RecompressionQueue.maximumDelays {
      let item = try #require(next)
      #expect(item.delays == delays)
      let end = queue.end(item, .delayed)
      #expect(!end.isDropped)
      next = end.next
    }
    let end = queue.end(try #require(next), .delayed)
    #expect(end.next == nil && end.isDropped && queue.count == 0 && !queue.isRunning)
    #expect(queue.add(try Self.item(1)).start?.delays == 0)
  }

  @Test(arguments: 0..<10 as Range<UInt64>)
  func `one item runs at a time, each once, in order, as in a simple model`(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    var queue = RecompressionQueue()
    var running: RecompressionQueue.Item?
    var waiting: [RecompressionQueue.Item] = []
    let items = try (0..<600).map { try Self.item($0) }
    var wasFull = false
    for step in 0..<6_000 {
      let adds = step / 1_500 % 2 == 0 ? 9 : 3
      if running == nil || Int.random(in: 0..<10, using: &random) < adds {
        let item = try #require(items.randomElement(using: &random))
        let (isKept, start) = queue.add(item)
        if running?.key == item.key || waiting.contains(where: { $0.key == item.key }) {
          #expect(isKept && start == nil)
        } else if waiting.count == RecompressionQueue.limit {
          #expect(!isKept && start == nil)
          wasFull = true
        } else if running == nil {
          #expect(isKept && start == item)
          running = item
        } else {
          #expect(isKept && start == nil)
          waiting.append(item)
        }
      } else if let item = running {
        let isDelayed = Int.random(in: 0..<4, using: &random) == 0
        let (next, isDropped) = queue.end(item, isDelayed ? .delayed : .done)
        if isDelayed, item.delays < RecompressionQueue.maximumDelays {
          var again = item
          again.delays += 1
          waiting.append(again)
        }
        #expect(isDropped == (isDelayed && item.delays == RecompressionQueue.maximumDelays))
        running = waiting.isEmpty ? nil : waiting.removeFirst()
        #expect(next == running)
      }
      #expect(queue.count == waiting.count + (running == nil ? 0 : 1))
      #expect(queue.isRunning == (running != nil))
    }
    #expect(wasFull)
  }
}
