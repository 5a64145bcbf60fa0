// Explaining: what a request would do, by running its miss with the effects held back.

import Core

/// What a miss may do.
enum Effects: Sendable {
  /// All of it, for the participant of its flight.
  case allowed(FlightParticipant)
  /// Look and decide. It counts no look-up, loads and renders nothing, and stores nothing.
  case held(ExplanationTrace)

  /// The flight's participant, which brings the priority of its requests; `nil` for an explanation.
  var participant: FlightParticipant? {
    if case .allowed(let participant) = self { participant } else { nil }
  }

  /// The notes of an explanation; `nil` for a flight.
  var trace: ExplanationTrace? { if case .held(let trace) = self { trace } else { nil } }

  /// Notes what a step decides, for an explanation.
  func note(_ step: String, _ why: @autoclosure () -> String) {
    if case .held(let trace) = self { trace.note(step, why()) }
  }
}

/// The steps that an explained miss has passed.
final class ExplanationTrace: Sendable {
  private struct State {
    var steps: [ExplainedStep] = []
    var isCollapsed = false
  }

  private let state = Lock(State())

  func note(_ step: String, _ why: String) {
    state.withLock { $0.steps.append(ExplainedStep(step, .next, why)) }
  }

  /// Notes that the miss joins work of another request.
  func collapse() { state.withLock { $0.isCollapsed = true } }

  /// Whether the miss joins work of another request.
  var isCollapsed: Bool { state.withLock { $0.isCollapsed } }

  /// Returns the steps, of which the last one ends the request.
  func steps(endingIn outcome: ExplainedStep.Outcome) -> [ExplainedStep] {
    var steps = state.withLock { $0.steps }
    if let last = steps.popLast() { steps.append(ExplainedStep(last.step, outcome, last.why)) }
    return steps
  }
}

extension ImageManager: RequestExplainer {
  /// See `RequestExplainer`.
  public func explain(_ request: ImageRequest) async -> Explanation {
    var explanation = Explanation()
    let now = parts.now()
    let entries = await parts.cache.lookUp(request.key)
    func entry(_ info: CacheEntryInfo?) -> ExplainedEntry? {
      info.map {
        ExplainedEntry($0, use: .init(parts.staleness.use(of: $0.freshness, by: request)), at: now)
      }
    }
    explanation.memory = entry(entries.memory)
    explanation.disk = entry(entries.disk)
    explanation.source = entry(await parts.store.entry(of: request.key.source))
    let transform = request.transform.canonicalText
    explanation.failures = parts.failures.all().filter {
      $0.url == SecretMask.withoutUsers(request.key.url) && ($0.transform ?? transform) == transform
    }
    explanation.flights = sources.running(for: request)
    explanation.flights.variant = flights.waiters(of: FlightKey(request))
    explanation.origin = await parts.loader.outlook(for: request.source)
    let trace = ExplanationTrace()
    do throws(ImageError) {
      let status = try await answer(to: request, with: .held(trace)).status
      explanation.would = trace.steps(endingIn: .answers)
      explanation.answer = ExplainedAnswer(cacheStatus: status.headerValue)
      explanation.answer?.isCollapsed = trace.isCollapsed && status.isForwarded
    } catch {
      explanation.would = trace.steps(endingIn: .fails)
      explanation.answer = ExplainedAnswer(error)
    }
    return explanation
  }

  /// Notes what comes between a request's own look-ups and the rest of a miss: the fallback of a
  /// pending AVIF answers at once, and a running flight is joined.
  ///
  /// - Returns: the status of an answer at once.
  func explainFlight(of request: ImageRequest, in trace: ExplanationTrace) -> CacheStatus? {
    if let (_, found) = pendingFallback(for: request), let use = found.use {
      trace.note("pending-avif", "the AVIF is being encoded; its fallback answers")
      return parts.staleness.status(of: use, with: found.variant.info.freshness, from: .memory)
    }
    let participants = flights.waiters(of: FlightKey(request))
    if participants > 0 {
      trace.collapse()
      trace.note("flight", "joins a running flight: \(participants) requests wait")
    }
    return nil
  }
}

extension Variant {
  /// Creates a variant without its bytes from an entry, for an explanation; `nil` for another
  /// entry.
  convenience init?(_ entry: CacheEntryInfo, of key: CacheKey) {
    guard case .variant(let info) = entry.stored else { return nil }
    let none = [UInt8]().withUnsafeBytes { ImageBytes(copying: $0) }
    self.init(
      key: key, info: info,
      body: entry.isInMemory ? .memory(none) : .file(FileRegion(owning: -1, count: entry.bytes)))
  }
}

extension Source {
  /// Creates a source without its bytes from an entry, for an explanation; `nil` for another entry.
  convenience init?(_ entry: CacheEntryInfo, of key: CacheKey) {
    guard case .source(let origin, let version) = entry.stored else { return nil }
    self.init(
      key: key, file: FileRegion(owning: -1, count: entry.bytes), origin: origin,
      freshness: entry.freshness, version: version, generation: entry.generation)
  }

  /// The source of an explained request that would ask the origin: without a version, for nothing
  /// is known of it.
  static func unknown(_ key: CacheKey) -> Source {
    Source(
      key: key, file: FileRegion(owning: -1, count: 0), origin: OriginResponse(status: 200),
      freshness: Freshness(receivedAt: UnixTime(seconds: 0), lifetime: 0, isStorable: false),
      version: 0)
  }
}

extension CacheStatus {
  fileprivate var isForwarded: Bool {
    switch self {
    case .miss, .staleIfError: true
    case .hit, .staleHit: false
    }
  }
}

extension CacheStatus.StaleReason {
  var text: String {
    switch self {
    case .whileRevalidating: "stale, while it is revalidated"
    case .ifError: "stale, because the origin failed recently"
    case .accepted: "stale, as the request accepts"
    }
  }
}

extension ExplainedEntry.Use {
  fileprivate init(_ use: EntryUse?) {
    switch use {
    case .fresh: self = .fresh
    case .stale(.whileRevalidating): self = .whileRevalidating
    case .stale(.ifError): self = .ifError
    case .stale(.accepted): self = .accepted
    case nil: self = .no
    }
  }
}
