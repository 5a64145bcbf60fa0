// StatsEndpoint: reports health and figures to operators, Prometheus and orchestrators.

import Core

/// `/stats`: the figures of all parts. 503 while the server stops, for load balancers.
struct StatsEndpoint: Endpoint {
  let path = EndpointPath.exact("/stats")
  let access = EndpointAccess.open
  let isRoutine = true

  func operation(for method: Method) -> Operation? {
    Operation(summary: "Health and figures; 503 while the server stops")
  }

  func handle(_ context: RequestContext) throws(ImageError) -> Disposition {
    let readiness = context.readiness
    let figures = try context.handler.figuresCache.text(isDraining: readiness.isDraining)
    var response = JSONResponse(figures, for: context, status: readiness.status)
    response.closes = readiness.closes
    return .json(response)
  }
}

/// `/metrics`: the figures of `/stats` in the format that `Accept` prefers. The status is 200 while
/// the server stops, too: Prometheus drops the figures of any other response.
struct MetricsEndpoint: Endpoint {
  let path = EndpointPath.exact("/metrics")
  let access = EndpointAccess.open
  let isRoutine = true

  func operation(for method: Method) -> Operation? {
    Operation(
      summary: "The same figures for Prometheus",
      answers: ["text/plain", "application/openmetrics-text"])
  }

  func handle(_ context: RequestContext) throws(ImageError) -> Disposition {
    let isOpen = context.elements(of: "Accept").prefersOpenMetrics
    let cache = isOpen ? context.handler.openMetricsCache : context.handler.metricsCache
    let format = isOpen ? MetricText.Format.openMetrics : .prometheus
    return .json(
      JSONResponse(
        try cache.text(isDraining: context.readiness.isDraining), for: context,
        contentType: format.contentType, varyingBy: "Accept, Accept-Encoding"))
  }
}

/// Whether the server serves, as `/stats` says it.
struct Readiness {
  let closes: Bool
  /// Whether the server stops, or is about to.
  let isDraining: Bool

  /// The HTTP status of `/stats`.
  var status: Int { isDraining ? 503 : 200 }
  /// The value of the key `status`.
  var name: String { isDraining ? "draining" : "serving" }
}

extension RequestContext {
  /// Whether the server serves. Read once for each response.
  var readiness: Readiness {
    // In this order: a response with status 200 must not close its connection.
    let closes = handler.closesConnections
    return Readiness(closes: closes, isDraining: closes || handler.announcesStop)
  }
}

/// A check of the server's health, on every listener. It computes no figures.
///
/// The two checks are apart as in Kubernetes (“Configure Liveness, Readiness and Startup Probes”):
/// a server that drains gets no new requests, and must not be killed for it.
struct HealthEndpoint: Endpoint {
  /// What is checked.
  enum Check: Sendable {
    /// Whether the server responds at all. A server that does not respond needs a restart.
    case liveness
    /// Whether the server wants requests: from its start to its stop.
    case readiness
  }

  let path: EndpointPath
  let access = EndpointAccess.open
  let isRoutine = true
  private let check: Check

  init(_ path: String, _ check: Check) {
    self.path = .exact(path)
    self.check = check
  }

  func operation(for method: Method) -> Operation? {
    Operation(
      summary: check == .liveness
        ? "Whether the server responds" : "Whether it wants requests; 503 while it stops")
  }

  func handle(_ context: RequestContext) throws(ImageError) -> Disposition {
    let readiness = context.readiness
    let status = check == .liveness ? 200 : readiness.status
    var response = try JSONResponse(["status": readiness.name], status: status)
    response.closes = readiness.closes
    return .json(response)
  }
}

/// Reuses the text of the figures for a while, so that many requests for them cost little.
///
/// One thread at a time computes. Meanwhile the others get the previous figures, and do not wait.
final class FiguresCache: Sendable {
  private struct State {
    /// Milliseconds.
    var lifetime: Int
    var text: CodedText?
    var isDraining = false
    /// Monotonic milliseconds.
    var computedAt = 0
    var isComputing = false
  }

  private let compute: @Sendable (Bool) -> Figures
  private let encode: @Sendable (Figures) throws(ImageError) -> [UInt8]
  private let clock: @Sendable () -> Int
  private let state: Lock<State>

  /// Creates a cache without figures.
  ///
  /// - Parameters:
  ///   - lifetime: how long figures are reused; 0: not at all.
  ///   - clock: monotonic milliseconds.
  ///   - encode: returns the text of the figures, by default JSON.
  ///   - compute: the figures, by whether the server stops. Must not block.
  init(
    lifetime: Duration, clock: @escaping @Sendable () -> Int = Clock.coarseMilliseconds,
    encode: @escaping @Sendable (Figures) throws(ImageError) -> [UInt8] = json,
    compute: @escaping @Sendable (_ isDraining: Bool) -> Figures
  ) {
    state = Lock(State(lifetime: lifetime.wholeMilliseconds))
    self.clock = clock
    self.encode = encode
    self.compute = compute
  }

  /// Changes how long figures are reused.
  func set(lifetime: Duration) { state.withLock { $0.lifetime = lifetime.wholeMilliseconds } }

  static func json(_ figures: Figures) throws(ImageError) -> [UInt8] {
    try JSONResponse(figures).bytes
  }

  /// Returns the text of the figures. Those from before a change of `isDraining` are not reused.
  ///
  /// - Throws: `internal` if they cannot be encoded.
  func text(isDraining: Bool) throws(ImageError) -> CodedText {
    let now = clock()
    let known = state.withLock { state -> CodedText? in
      if state.lifetime > 0, let text = state.text, state.isDraining == isDraining,
        state.isComputing || now - state.computedAt < state.lifetime
      {
        return text
      }
      state.isComputing = true
      return nil
    }
    if let known { return known }
    // Outside of the lock, because it asks all parts.
    let computed: Result<CodedText, ImageError> = Result { () throws(ImageError) in
      CodedText(try encode(compute(isDraining)))
    }
    state.withLock { state in
      state.isComputing = false
      guard case .success(let text) = computed else { return }
      state.text = text
      state.isDraining = isDraining
      state.computedAt = now
    }
    return try computed.get()
  }
}
