// SpanQueueTests: when a batch is sent, what is dropped, and what is counted.

import Core
import TestSupport
import Testing

@testable import Tracing

struct SpanQueueTests {
  private let start = ContinuousClock.now
  private var queue: SpanQueue

  init() { queue = Self.queue(limit: 5) }

  private static func queue(limit: Int) -> SpanQueue {
    var configuration = SpanExporterConfiguration(endpoint: "http://127.0.0.1/")
    configuration.batchLimit = 3
    configuration.queueLimit = limit
    configuration.delay = .seconds(5)
    return SpanQueue(configuration)
  }

  /// Returns the names of a batch; `nil` if nothing is to be sent.
  private func names(_ step: SpanQueue.Step) -> [String]? {
    if case .send(let spans) = step { spans.map(\.name) } else { nil }
  }

  @Test func `a batch is sent when it is full, and else when its first span has waited`() {
    var queue = queue
    let batch1 = names(queue.next(now: start))
    #expect(batch1 == nil)
    let wakesForFirst = queue.add(makeSpan(1), now: start)
    #expect(wakesForFirst)
    let wakesForSecond = queue.add(makeSpan(2), now: start + .seconds(4))
    #expect(!wakesForSecond)
    guard case .wait(let time) = queue.next(now: start + .seconds(4)) else {
      Issue.record("a batch is sent too early")
      return
    }
    #expect(time == start + .seconds(5))
    let batch2 = names(queue.next(now: start + .seconds(5)))
    #expect(batch2 == ["GET /1", "GET /2"])
    queue.sent(.done(rejected: 0))
    for number in 3...6 { _ = queue.add(makeSpan(number), now: start + .seconds(6)) }
    let batch3 = names(queue.next(now: start + .seconds(6)))
    #expect(batch3 == ["GET /3", "GET /4", "GET /5"])
    #expect(queue.figures.exported == 2 && queue.figures.waiting == 4)
  }

  @Test func `spans behind full batches keep their order, and wait for their own time`() {
    // Given
    var queue = Self.queue(limit: 100)
    for number in 1...9 { _ = queue.add(makeSpan(number), now: start) }
    _ = queue.add(makeSpan(10), now: start + .seconds(3))
    #expect(queue.figures.waiting == 10)
    // When
    var found: [String] = []
    for _ in 0..<3 {
      let batch = names(queue.next(now: start + .seconds(4)))
      #expect(batch?.count == 3)
      #expect(queue.figures.waiting == 10 - found.count)
      found += batch ?? []
      queue.sent(.done(rejected: 0))
    }
    // Then
    guard case .wait(let time) = queue.next(now: start + .seconds(4)) else {
      Issue.record("a batch is sent too early")
      return
    }
    #expect(time == start + .seconds(8))
    found += names(queue.next(now: start + .seconds(8))) ?? []
    #expect(found == (1...10).map { "GET /\($0)" })
  }

  @Test func `a full queue drops spans, those being sent included`() {
    var queue = queue
    for number in 1...4 { _ = queue.add(makeSpan(number), now: start) }
    let batch4 = names(queue.next(now: start))
    #expect(batch4?.count == 3)
    for number in 5...9 { _ = queue.add(makeSpan(number), now: start) }
    #expect(queue.figures.waiting == 5 && queue.figures.dropped == 4)
    queue.sent(.lost)
    #expect(queue.figures.lost == 3 && queue.figures.waiting == 2)
    let wakesAgain = queue.add(makeSpan(10), now: start)
    #expect(wakesAgain)
  }

  @Test func `each span is counted once`() {
    var queue = queue
    for step in [ExportPolicy.Step.done(rejected: 2), .refused, .done(rejected: 9)] {
      for number in 1...3 { _ = queue.add(makeSpan(number), now: start) }
      let batch5 = names(queue.next(now: start))
      #expect(batch5?.count == 3)
      queue.sent(step)
    }
    let figures = queue.figures
    #expect(figures.exported == 1 && figures.rejected == 8 && figures.waiting == 0)
  }

  @Test func `a closed queue sends what it has at once, and nothing after its end`() {
    var queue = queue
    for number in 1...4 { _ = queue.add(makeSpan(number), now: start) }
    queue.close(until: start + .seconds(2))
    let wakesClosed = queue.add(makeSpan(5), now: start)
    #expect(!wakesClosed)
    let batch6 = names(queue.next(now: start))
    #expect(batch6?.count == 3)
    queue.sent(.done(rejected: 0))
    guard case .end = queue.next(now: start + .seconds(2)) else {
      Issue.record("a batch is sent too late")
      return
    }
    let figures = queue.figures
    #expect(figures.exported == 3 && figures.lost == 1 && figures.dropped == 1)
    #expect(figures.waiting == 0)
  }
}
