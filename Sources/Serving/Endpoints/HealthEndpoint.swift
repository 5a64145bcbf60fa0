// HealthEndpoint: tells orchestrators whether the server lives and whether it serves.

import Model

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
  let methods: [Method] = [.get, .head]
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
