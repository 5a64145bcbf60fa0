// StatsEndpoint: reports health and figures to operators, Prometheus and orchestrators.

import Core

/// `/stats`: the figures of all parts. 503 while the server stops, for load balancers.
struct StatsEndpoint: Endpoint {
  let path = EndpointPath.exact("/stats")
  let access = EndpointAccess.open
  let isRoutine = true

  func handle(_ context: RequestContext) throws(ImageError) -> Disposition {
    let readiness = context.readiness
    let figures = try context.handler.figuresCache.bytes(isDraining: readiness.isDraining)
    var response = JSONResponse(bytes: figures, status: readiness.status)
    response.closes = readiness.closes
    return .json(response)
  }
}

/// `/metrics`: the figures of `/stats` in Prometheus's text format. The status is 200 while the
/// server stops, too: Prometheus drops the figures of any other response.
struct MetricsEndpoint: Endpoint {
  let path = EndpointPath.exact("/metrics")
  let access = EndpointAccess.open
  let isRoutine = true

  func handle(_ context: RequestContext) throws(ImageError) -> Disposition {
    let text = try context.handler.metricsCache.bytes(isDraining: context.readiness.isDraining)
    var response = JSONResponse(bytes: text, status: 200)
    response.contentType = MetricText.contentType
    return .json(response)
  }
}

/// Whether the server serves, as `/stats` says it.
struct Readiness {
  /// Whether the response closes its connection.
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

  func handle(_ context: RequestContext) throws(ImageError) -> Disposition {
    let readiness = context.readiness
    let status = check == .liveness ? 200 : readiness.status
    var response = try JSONResponse(["status": readiness.name], status: status)
    response.closes = readiness.closes
    return .json(response)
  }
}
