// SpanQueue: spans that wait for the exporter's thread.

import Platform
import Telemetry

/// A bounded queue of spans. A pure state: the caller tells the time and has the lock.
///
/// Event loops add spans under that lock. So a batch is filled in an array of its own, and `next` takes the whole array:
/// no call moves spans.
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
  /// Full batches, in order.
  private var full = Deque<[Span]>()
  /// The batch that is being filled, behind the full ones.
  private var filling: [Span] = []
  /// When the first span of `filling` arrived.
  private var since: ContinuousClock.Instant?
  /// Spans that are being sent.
  private var sending = 0
  /// When the last request has to be over; `nil`: the queue is open.
  private(set) var end: ContinuousClock.Instant?
  /// Spans, by what became of them.
  private var exported = 0, dropped = 0, rejected = 0, lost = 0
  /// Requests to the collector.
  var exportsSucceeded = 0, exportsFailed = 0

  init(_ configuration: SpanExporterConfiguration) {
    limit = max(configuration.queueLimit, 1)
    batchLimit = max(min(configuration.batchLimit, limit), 1)
    delay = configuration.delay
  }

  /// Adds a span, or drops it. Returns whether the thread has to be woken.
  mutating func add(_ span: Span, now: ContinuousClock.Instant) -> Bool {
    guard end == nil, queued + sending < limit else {
      dropped += 1
      return false
    }
    if filling.isEmpty { since = now }
    filling.append(span)
    guard filling.count == batchLimit else { return full.isEmpty && filling.count == 1 }
    full.append(takeFilling())
    return full.count == 1
  }

  /// Spans that are not being sent.
  private var queued: Int { full.count * batchLimit + filling.count }

  private mutating func takeFilling() -> [Span] {
    let batch = filling
    filling = []
    since = nil
    return batch
  }

  /// Returns the next step. A batch that is returned counts as being sent until `sent`.
  mutating func next(now: ContinuousClock.Instant) -> Step {
    if let end {
      if queued == 0 { return .end }
      guard now < end else {
        lost += queued
        full.removeAll()
        filling = []
        return .end
      }
    } else if full.isEmpty {
      guard let since else { return .wait(until: nil) }
      guard now >= since + delay else { return .wait(until: since + delay) }
    }
    let batch = full.popFirst() ?? takeFilling()
    sending = batch.count
    return .send(batch)
  }

  /// Counts what became of the batch that is being sent.
  mutating func sent(_ step: ExportPolicy.Step) {
    switch step {
    case .done(let rejected):
      let refused = min(rejected, sending)
      exported += sending - refused
      self.rejected += refused
    case .refused: rejected += sending
    case .lost, .retry: lost += sending
    }
    sending = 0
  }

  /// Takes no more spans. What waits has to be sent until `end`.
  mutating func close(until end: ContinuousClock.Instant) { self.end = min(self.end ?? end, end) }

  /// The figures now.
  var figures: Figures {
    var figures = Figures()
    let spans = "pictor_trace_spans_total"
    let help = "Recorded spans, by what became of them."
    figures.add("exported", exported, spans, help, ["result": "exported"])
    figures.add("dropped", dropped, spans, help, ["result": "dropped"])
    figures.add("rejected", rejected, spans, help, ["result": "rejected"])
    figures.add("lost", lost, spans, help, ["result": "lost"])
    figures.add(
      "exports_succeeded", exportsSucceeded, "pictor_trace_exports_total",
      "Requests to the collector of spans.", ["result": "succeeded"])
    figures.add(
      "exports_failed", exportsFailed, "pictor_trace_exports_total",
      "Requests to the collector that failed.", ["result": "failed"])
    figures.add(
      "waiting", queued + sending, "pictor_trace_queue_spans",
      "Spans that are queued or being sent.")
    figures.add(
      "limit", limit, "pictor_trace_queue_limit", "The most spans that may be queued.")
    return figures
  }
}
