// MetricsEndpoint: reports the figures to Prometheus.

import Model
import Telemetry

/// `/metrics`: the figures of `/stats` in Prometheus's text format. The status is 200 while the
/// server stops, too: Prometheus drops the figures of any other response.
struct MetricsEndpoint: Endpoint {
  let path = EndpointPath.exact("/metrics")
  let methods: [Method] = [.get, .head]
  let access = EndpointAccess.open
  let isRoutine = true

  func handle(_ context: RequestContext) throws(ImageError) -> Disposition {
    let text = try context.handler.metricsCache.bytes(isDraining: context.readiness.isDraining)
    var response = JSONResponse(bytes: text, status: 200)
    response.contentType = MetricText.contentType
    return .json(response)
  }
}
