// RequestContext+Options: responds to OPTIONS, and to CORS preflights.

import CMicrohttpd
import Core

extension RequestContext {
  /// Seconds for which a browser may cache a preflight response; Chromium's own limit.
  private static let preflightLifetime = "7200"

  /// Responds with the allowed methods and request fields (WHATWG Fetch, section 3.3.3).
  func respondToOptions() -> MHD_Result {
    let endpoint = endpoint
    let methods = endpoint?.allow ?? EndpointTable.allowAnywhere
    var head = ResponseHead(date: Clock.now(), id: client.requestID)
    head.add("Allow", value: methods)
    if !policy.configuration.corsOrigins.isEmpty {
      head.add("Access-Control-Allow-Methods", value: methods)
      head.add(
        "Access-Control-Allow-Headers", value: requestFields(of: endpoint).joined(separator: ", "))
      head.add("Access-Control-Max-Age", value: Self.preflightLifetime)
    }
    addCommon(to: &head, vary: nil)
    return respond(204, head: head)
  }

  /// Returns the request fields that a page may send in addition to the safelisted ones.
  private func requestFields(of endpoint: (any Endpoint)?) -> [String] {
    var names = [
      "X-Operation-Key", "Priority", "Cache-Control", "If-None-Match", "If-Modified-Since",
    ]
    if endpoint?.access == .operators { names += ["Authorization", "Content-Type"] }
    for name in client.target?.forwarding?.names ?? []
    where !names.contains(where: { $0.lowercased() == name.lowercased() }) {
      names.append(name)
    }
    return names
  }
}
