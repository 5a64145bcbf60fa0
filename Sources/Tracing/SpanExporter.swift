// SpanExporter: sends spans to a collector, in batches, on a thread of its own.

import Glibc
import Model
import Platform
import Telemetry

/// Exports spans by OTLP/HTTP with JSON bodies. No request waits for it: a full queue drops spans.
public final class SpanExporter: SpanSink {
  private struct State {
    var queue: SpanQueue
    var isEnded = false
  }

  private let text: SpanText
  private let policy: ExportPolicy
  private let connection: CollectorConnection
  private let state: Lock<State>
  private let wake: WakeSignal
  private let log: Log

  /// Starts the thread, which ends with `stop`.
  ///
  /// - Throws: `SystemError` without memory, descriptors or threads.
  public init(_ configuration: SpanExporterConfiguration, log: Log) throws(SystemError) {
    text = SpanText(instance: configuration.instance)
    policy = configuration.policy
    connection = try CollectorConnection(configuration)
    state = Lock(State(queue: SpanQueue(configuration)))
    wake = try WakeSignal()
    self.log = log
    try OwnThread.start(name: "pictor-trace", rank: .background) { self.run() }
  }

  /// Takes an ended span. Never blocks.
  public func add(_ span: Span) {
    if state.withLock({ $0.queue.add(span, now: .now) }) { wake.set() }
  }

  /// The figures now.
  public var figures: Figures { state.withLock { $0.queue.figures } }

  /// Sends what waits, each batch once more, then ends the thread. Waits up to `limit`; what the collector has not taken
  /// by then is lost. Blocks; not for tasks.
  public func stop(within limit: Duration) {
    let end = ContinuousClock.now + limit
    state.withLock { $0.queue.close(until: end) }
    wake.set()
    connection.wakeUp()
    // The thread needs a moment to notice the end of its time.
    while !state.withLock({ $0.isEnded }), .now < end + .milliseconds(200) { usleep(1_000) }
  }

  private func run() {
    var waiting = Poll([wake.descriptor])
    var problem: String?
    while true {
      switch state.withLock({ $0.queue.next(now: .now) }) {
      case .wait(let deadline):
        waiting.wait(until: deadline)
        wake.reset()
      case .send(let batch):
        send(text.body(of: batch), &waiting, &problem)
      case .end:
        return state.withLock { $0.isEnded = true }
      }
    }
  }

  /// Sends a batch until it is taken or given up.
  private func send(_ body: [UInt8], _ waiting: inout Poll, _ problem: inout String?) {
    var attempt = 1
    while true {
      let wasOpen = end == nil
      let reply = connection.post(body) { end }
      report(reply, after: &problem)
      let step = policy.step(after: reply, attempt: attempt, chance: .random(in: 0...1))
      state.withLock {
        if case .done = step {
          $0.queue.exportsSucceeded += 1
        } else {
          $0.queue.exportsFailed += 1
        }
      }
      // During a stop nothing is waited for: one more attempt, if the last one began before it.
      guard case .retry(let delay) = step, wasOpen else {
        return state.withLock { $0.queue.sent(step) }
      }
      let time = ContinuousClock.now + delay
      while end == nil, .now < time {
        waiting.wait(until: time)
        wake.reset()
      }
      attempt += 1
    }
  }

  /// When everything has to be over; `nil` before `stop`.
  private var end: ContinuousClock.Instant? { state.withLock { $0.queue.end } }

  /// Logs a problem that is new, and the end of one.
  private func report(_ reply: CollectorReply, after problem: inout String?) {
    let current = reply.problem
    guard current != problem else { return }
    problem = current
    if let current {
      log.warning("spans are not exported", fields: ["detail": .string(current)])
    } else {
      log.info("spans are exported again", fields: [:])
    }
  }
}
