// SpanExporter: sends spans to a collector, in batches, on a thread of its own.

import CCurl
import Core
import FoundationEssentials
import Glibc
import Requesting

/// The settings of a `SpanExporter`.
public struct SpanExporterConfiguration: Sendable {
  /// The collector's URL for spans, with its path.
  public var endpoint: String
  /// Header fields for the collector; they may be secrets.
  public var headers: [HeaderField] = []
  /// A file with certificate authorities; empty: the system's.
  public var caFile = ""
  /// The name of this running server, unlike that of any other: `service.instance.id`.
  public var instance = ""

  /// The most spans of a request to the collector.
  public var batchLimit = 512
  /// How long the first span of a batch waits for others.
  public var delay: Duration = .seconds(5)
  /// The most spans that may be queued, those being sent included.
  public var queueLimit = 2_048
  /// The most time of a request to the collector.
  public var timeout: Duration = .seconds(10)
  /// How a failed request is repeated.
  var policy = ExportPolicy()

  /// Creates the settings for a collector.
  public init(endpoint: String) { self.endpoint = endpoint }
}

/// Exports spans by OTLP/HTTP with JSON bodies. No request waits for it: a full queue drops spans.
public final class SpanExporter: SpanSink {
  private struct State {
    var queue: SpanQueue
    var isEnded = false
  }

  private let text: SpanText
  private let policy: ExportPolicy
  /// Its one connection is kept. Without a request, the thread waits in it as well.
  private let multi: MultiHandle
  private let request: ServerRequest
  private let timeout: Duration
  private let state: Lock<State>
  private let log: Log

  /// Starts the thread, which ends with `stop`.
  ///
  /// - Throws: `SystemError` without memory, descriptors or threads.
  public init(_ configuration: SpanExporterConfiguration, log: Log) throws(SystemError) {
    text = SpanText(instance: configuration.instance)
    policy = configuration.policy
    timeout = configuration.timeout
    var request = ServerRequest(.post, configuration.endpoint)
    request.fields =
      ["Content-Type: application/json", "Accept: application/json"]
      + configuration.headers.map { "\($0.name): \($0.value)" }
    request.caFile = configuration.caFile
    request.allowsHTTP2 = true
    self.request = request
    do throws(ImageError) {
      multi = try MultiHandle(idleConnectionLimit: 1)
    } catch {
      throw SystemError(ENOMEM)
    }
    state = Lock(State(queue: SpanQueue(configuration)))
    self.log = log
    try OwnThread.start(name: "pictor-trace", rank: .background) { self.run() }
  }

  /// Takes an ended span. Never blocks.
  public func add(_ span: Span) {
    if state.withLock({ $0.queue.add(span, now: .now) }) { multi.wakeUp() }
  }

  /// The figures now.
  public var figures: Figures { state.withLock { $0.queue.figures } }

  /// Sends what waits, each batch once more, then ends the thread. Waits up to `limit`; what the
  /// collector has not taken by then is lost. Blocks; not for tasks.
  public func stop(within limit: Duration) {
    let end = ContinuousClock.now + limit
    state.withLock { $0.queue.close(until: end) }
    multi.wakeUp()
    // The thread needs a moment to notice the end of its time.
    while !state.withLock({ $0.isEnded }), .now < end + .milliseconds(200) { usleep(1_000) }
  }

  private func run() {
    var problem: String?
    while true {
      switch state.withLock({ $0.queue.next(now: .now) }) {
      case .wait(let deadline): wait(until: deadline)
      case .send(let batch): send(text.body(of: batch), &problem)
      case .end:
        return state.withLock { $0.isEnded = true }
      }
    }
  }

  /// Sends a batch until it is taken or given up.
  private func send(_ body: [UInt8], _ problem: inout String?) {
    var attempt = 1
    while true {
      let wasOpen = end == nil
      let reply = post(body)
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
      while end == nil, .now < time { wait(until: time) }
      attempt += 1
    }
  }

  /// Waits until then, or until it is woken; `nil`: until it is woken.
  private func wait(until time: ContinuousClock.Instant?) {
    do throws(ImageError) {
      try multi.wait(atMost: time.map { $0 - .now } ?? .seconds(60))
      // A connection that is being closed would end each wait at once (newer libcurl).
      _ = try multi.perform()
    } catch {
      // curl lacks memory: the thread must not spin.
      usleep(100_000)
    }
  }

  /// Sends a request and waits for the response. Blocks.
  private func post(_ bytes: [UInt8]) -> CollectorReply {
    var request = request
    request.body = bytes
    let limit = ContinuousClock.now + timeout
    do throws(ImageError) {
      let exchange = try ServerExchange(request)
      // `stop` ends the wait earlier.
      guard let code = try multi.run(exchange, until: { min(limit, end ?? limit) }) else {
        return .failed("no response in time")
      }
      guard !exchange.isHeadTooLong else { return .failed("too many header fields") }
      guard code == CURLE_OK || exchange.isCut, exchange.status > 0 else {
        return .failed(Curl.text(code))
      }
      return .answered(
        status: exchange.status, retryAfter: exchange.retryAfter,
        rejected: PartialSuccess.rejected(exchange.bytes))
    } catch {
      return .failed("curl failed")
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

/// Decides by the collector's answer (OpenTelemetry protocol 1.x, "OTLP/HTTP Response").
struct ExportPolicy: Sendable {
  /// What follows an attempt.
  enum Step: Equatable, Sendable {
    /// The collector took the batch, except `rejected` spans.
    case done(rejected: Int)
    /// Send the batch again after this time.
    case retry(after: Duration)
    /// The collector refused the batch; it would do so again.
    case refused
    /// The batch is given up.
    case lost
  }

  var attempts = 5
  /// The first back-off; each further one is twice as long.
  var delay: Duration = .seconds(1)
  /// The longest back-off without a `Retry-After`.
  var longestDelay: Duration = .seconds(30)
  /// The longest `Retry-After` that is waited for. Meanwhile the queue fills up.
  var longestWish: Duration = .seconds(300)

  /// Returns what follows.
  ///
  /// - Parameters:
  ///   - attempt: the number of the attempt, from 1.
  ///   - chance: 0–1, for jitter: a back-off takes between half of its time and all.
  func step(after reply: CollectorReply, attempt: Int, chance: Double) -> Step {
    var wish: Duration?
    switch reply {
    case .answered(200..<300, _, let rejected): return .done(rejected: rejected)
    case .answered(let status, let seconds, _):
      guard [429, 502, 503, 504].contains(status) else { return .refused }
      wish = seconds.map { .seconds($0) }
    case .failed: break
    }
    guard attempt < attempts else { return .lost }
    if let wish { return .retry(after: min(wish, longestWish)) }
    let backoff = Backoff(delay, longest: longestDelay, jitter: 0.5...1)
    return .retry(after: backoff.pause(after: attempt - 1, chance: chance))
  }
}

/// The outcome of a request to the collector.
enum CollectorReply: Equatable, Sendable {
  /// A response, with its `Retry-After` in seconds, and the number of spans it says it refused.
  case answered(status: Int, retryAfter: Int?, rejected: Int)
  case failed(String)

  /// What is wrong; `nil` if nothing is.
  var problem: String? {
    switch self {
    case .answered(200..<300, _, 0): nil
    case .answered(200..<300, _, _): "spans rejected"
    case .answered(let status, _, _): "status \(status)"
    case .failed(let reason): reason
    }
  }
}

/// A bounded queue of spans. A pure state: the caller tells the time and has the lock.
struct SpanQueue {
  /// What the exporter's thread does next.
  enum Step {
    /// Sleep until then, or until it is woken; `nil`: until it is woken.
    case wait(until: ContinuousClock.Instant?)
    case send([Span])
    /// End: the queue is closed and empty, or out of time.
    case end
  }

  private let limit, batchLimit: Int
  private let delay: Duration
  /// Spans that are not being sent, with their arrival.
  private var waiting = Deque<(span: Span, since: ContinuousClock.Instant)>()
  /// Spans that are being sent.
  private var sending = 0
  /// When the last request has to be over; `nil`: the queue is open.
  private(set) var end: ContinuousClock.Instant?
  /// Spans, by what became of them.
  private var exported = 0, dropped = 0, rejected = 0, lost = 0
  var exportsSucceeded = 0, exportsFailed = 0

  init(_ configuration: SpanExporterConfiguration) {
    limit = max(configuration.queueLimit, 1)
    batchLimit = max(min(configuration.batchLimit, limit), 1)
    delay = configuration.delay
  }

  /// Adds a span, or drops it. Returns whether the thread has to be woken.
  mutating func add(_ span: Span, now: ContinuousClock.Instant) -> Bool {
    guard end == nil, waiting.count + sending < limit else {
      dropped += 1
      return false
    }
    waiting.append((span, now))
    return waiting.count == 1 || waiting.count == batchLimit
  }

  /// Returns the next step. A batch that is returned counts as being sent until `sent`.
  mutating func next(now: ContinuousClock.Instant) -> Step {
    guard let due = waiting.first.map({ $0.since + delay }) else {
      return end == nil ? .wait(until: nil) : .end
    }
    if let end, now >= end {
      lost += waiting.count
      waiting = Deque()
      return .end
    }
    guard end != nil || waiting.count >= batchLimit || now >= due else { return .wait(until: due) }
    var batch: [Span] = []
    while batch.count < batchLimit, let next = waiting.popFirst() { batch.append(next.span) }
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
      "waiting", waiting.count + sending, "pictor_trace_queue_spans",
      "Spans that are queued or being sent.")
    figures.add(
      "limit", limit, "pictor_trace_queue_limit", "The most spans that may be queued.")
    return figures
  }
}

/// The part of the collector's response that counts refused spans (`ExportTracePartialSuccess`).
struct PartialSuccess: Decodable {
  private struct Count: Decodable {
    let value: Int

    init(from decoder: any Decoder) throws {
      let container = try decoder.singleValueContainer()
      // OTLP/JSON writes 64-bit integers as texts, and reads numbers, too.
      let number = try? container.decode(Int.self)
      value = try number ?? Int(container.decode(String.self)) ?? 0
    }
  }

  private struct Inner: Decodable {
    let rejectedSpans: Count?
  }

  private let partialSuccess: Inner?

  /// Returns how many spans a response refuses, at least 0; 0 for any other text.
  static func rejected(_ json: [UInt8]) -> Int {
    let found = try? JSONDecoder().decode(PartialSuccess.self, from: Data(json))
    return max(found?.partialSuccess?.rejectedSpans?.value ?? 0, 0)
  }
}

/// Writes requests to export spans (opentelemetry-proto, "OTLP/JSON"): ids in hexadecimal digits,
/// 64-bit integers as texts, enumerations as numbers.
struct SpanText: Sendable {
  private let head: String
  private static let tail = "]}]}]}"

  /// Prepares what all requests begin with.
  init(instance: String) {
    let resource = [
      SpanAttribute("service.name", "pictor"), SpanAttribute("service.version", pictorVersion),
      SpanAttribute("service.instance.id", instance),
    ]
    head =
      "{\"resourceSpans\":[{\"resource\":{\"attributes\":\(Self.text(resource))},"
      + "\"scopeSpans\":[{\"scope\":{\"name\":\"pictor\",\"version\":\(Self.quoted(pictorVersion))},"
      + "\"spans\":["
  }

  func body(of spans: [Span]) -> [UInt8] {
    Array((head + spans.map(Self.text).joined(separator: ",") + Self.tail).utf8)
  }

  /// The flag that says that the next one has a meaning, and the flag of a parent in another
  /// process (`SpanFlags`).
  private static let knowsParent = 0x100, hasRemoteParent = 0x200

  private static func text(_ span: Span) -> String {
    let context = span.context
    let isRemote = span.kind == .server && context.parent != nil
    let flags = Int(context.flags) | knowsParent | (isRemote ? hasRemoteParent : 0)
    var text = "{\"traceId\":\"\(context.traceID)\",\"spanId\":\"\(context.spanID)\","
    if let parent = context.parentID { text += "\"parentSpanId\":\"\(parent)\"," }
    if !context.state.isEmpty { text += "\"traceState\":\(quoted(context.state))," }
    text += "\"flags\":\(flags),\"name\":\(quoted(span.name)),\"kind\":\(span.kind.rawValue),"
    text += "\"startTimeUnixNano\":\"\(span.start)\",\"endTimeUnixNano\":\"\(span.end)\","
    text += "\"attributes\":\(Self.text(span.attributes)),"
    // 0: unset, 2: error.
    return text + "\"status\":{\"code\":\(span.isError ? 2 : 0)}}"
  }

  private static func text(_ attributes: [SpanAttribute]) -> String {
    let members = attributes.map { attribute in
      let value =
        switch attribute.value {
        case .text(let text): "\"stringValue\":\(quoted(text))"
        case .integer(let integer): "\"intValue\":\"\(integer)\""
        case .number(let number): "\"doubleValue\":\(number.isFinite ? number : 0)"
        }
      return "{\"key\":\(quoted(attribute.name)),\"value\":{\(value)}}"
    }
    return "[" + members.joined(separator: ",") + "]"
  }

  /// Returns a JSON string (RFC 8259, section 7).
  static func quoted(_ text: String) -> String {
    var result = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"", "\\": result += "\\\(scalar)"
      case _ where scalar.value < 0x20:
        result += "\\u00" + (scalar.value < 0x10 ? "0" : "") + String(scalar.value, radix: 16)
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result + "\""
  }
}
