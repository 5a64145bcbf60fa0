// SpanQueue: spans that wait for the exporter's thread.

import Telemetry

/// A bounded queue of spans. A pure state: the caller tells the time and has the lock.
struct SpanQueue {
  /// What the exporter's thread does next.
  enum Step {
    /// Sleep until then, or until it is woken; `nil`: until it is woken.
    case wait(until: ContinuousClock.Instant?)
    /// Send these.
    case send([Span])
    /// End: the queue is closed and empty, or out of time.
    case end
  }

  private let limit, batchLimit: Int
  private let delay: Duration
  private var spans: [Span] = []
  /// When the first of `spans` arrived.
  private var since: ContinuousClock.Instant?
  /// Spans that are being sent.
  private var sending = 0
  /// When the last request has to be over; `nil`: the queue is open.
  private(set) var end: ContinuousClock.Instant?
  /// The figures, without those of the queue itself.
  var counted = TracingFigures()

  init(_ configuration: SpanExporterConfiguration) {
    limit = max(configuration.queueLimit, 1)
    batchLimit = max(min(configuration.batchLimit, limit), 1)
    delay = configuration.delay
  }

  /// Adds a span, or drops it. Returns whether the thread has to be woken.
  mutating func add(_ span: Span, now: ContinuousClock.Instant) -> Bool {
    guard end == nil, spans.count + sending < limit else {
      counted.dropped += 1
      return false
    }
    spans.append(span)
    if since == nil { since = now }
    return spans.count == 1 || spans.count == batchLimit
  }

  /// Returns the next step. A batch that is returned counts as being sent until `sent`.
  mutating func next(now: ContinuousClock.Instant) -> Step {
    if let end {
      if spans.isEmpty { return .end }
      guard now < end else {
        counted.lost += spans.count
        spans = []
        return .end
      }
    } else {
      guard let since else { return .wait(until: nil) }
      guard spans.count >= batchLimit || now >= since + delay else {
        return .wait(until: since + delay)
      }
    }
    let batch = Array(spans.prefix(batchLimit))
    spans.removeFirst(batch.count)
    since = spans.isEmpty ? nil : now
    sending = batch.count
    return .send(batch)
  }

  /// Counts what became of the batch that is being sent.
  mutating func sent(_ step: ExportPolicy.Step) {
    switch step {
    case .done(let rejected):
      let refused = min(rejected, sending)
      counted.exported += sending - refused
      counted.rejected += refused
    case .refused: counted.rejected += sending
    case .lost, .retry: counted.lost += sending
    }
    sending = 0
  }

  /// Takes no more spans. What waits has to be sent until `end`.
  mutating func close(until end: ContinuousClock.Instant) { self.end = min(self.end ?? end, end) }

  /// The figures now.
  var figures: TracingFigures {
    var figures = counted
    figures.waiting = spans.count + sending
    figures.limit = limit
    return figures
  }
}
