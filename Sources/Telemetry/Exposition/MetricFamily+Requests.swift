// MetricFamily+Requests: the metrics of the HTTP server.

extension MetricFamily {
  /// The metrics of requests, clients and responses.
  static let requests: [MetricFamily] = [
    .counters(
      "pictor_image_requests_total", byOuter: "outcome", inner: "tier",
      "Answered requests for images and descriptions, by outcome and by the tier that had them."
    ) { $0.requests.byOutcome },
    .counters(
      "pictor_http_responses_total", by: "code", "Responses of all paths, by HTTP status code."
    ) { $0.requests.byStatus },
    .counters(
      "pictor_request_errors_total", by: "code", "Error responses of all paths, by error code."
    ) { $0.requests.errors },
    .counters(
      "pictor_fallbacks_total", by: "answer",
      "Failed images with a fallback, by what was sent: image, redirect, or unavailable for JSON."
    ) { $0.requests.fallbacks },
    .histograms(
      "pictor_image_duration_seconds", by: "path",
      "Time from the request head to the response: hits in memory, and all other images."
    ) { ["memory_hit": $0.requests.hitLatency, "other": $0.requests.missLatency] },
    .histograms(
      "pictor_image_stage_duration_seconds", by: "stage",
      "Time in each stage of Server-Timing, of images that were not memory hits; requests of one flight count once."
    ) { $0.requests.stages.mapValues { Optional($0) } },
    .counter("pictor_response_body_bytes_total", "Bytes of response bodies sent.") {
      $0.requests.bytesSent
    },
    .gauge("pictor_requests_active", "Requests in progress.") { $0.requests.active },
    .gauge("pictor_requests_active_limit", "The maximum number of requests that may wait.") {
      $0.requests.limit
    },
    .counter(
      "pictor_clients_gone_total", "Clients that disconnected before their response."
    ) { $0.requests.clientsGone },
    .gauges("pictor_connections", by: "listener", "Open connections.") {
      ["clients": $0.requests.connections, "operators": $0.requests.operatorConnections]
    },
    .counter(
      "pictor_connections_yielded_total", "Idle connections closed for newer ones."
    ) { $0.requests.connectionsYielded },
    .counter(
      "pictor_connections_refused_total",
      "New connections refused because their client had its share."
    ) { $0.requests.connectionsRefused },
    .counters(
      "pictor_rate_limited_requests_total", by: "limit",
      "Requests refused because their client had its share, by limit."
    ) { $0.requests.rateLimited },
    .counters(
      "pictor_refused_tokens_total", by: "reason",
      "Operators' requests whose token was refused, by reason."
    ) { $0.requests.tokensRefused },
    .gauge("pictor_known_targets", "Request targets whose cache keys are kept after a hit.") {
      $0.requests.knownTargets
    },
  ]
}
