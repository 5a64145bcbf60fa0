// MetricsEndpointTests: what clients of /metrics see: its form, its listener, its lifetime.

import Core
import TestSupport
import Testing

@testable import Serving

@Suite(.onOwnThreads) struct MetricsEndpointTests {
  @Test func `the answer is Prometheus's text`() async throws {
    try await withClient { client in
      let answer = try client.get("/metrics")
      #expect(answer.status == 200)
      #expect(answer["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8")
      #expect(answer["Cache-Control"] == "no-store")
      let page = try MetricsPage(answer.text)
      #expect(page.value("pictor_image_requests_total", ["outcome": "hit", "tier": "memory"]) == 0)
      let head = try client.head("/metrics")
      #expect(head.status == 200 && head["Content-Type"] == answer["Content-Type"])
      #expect(try client.request("POST", target: "/metrics").status == 405)
      #expect(try client.get("/metrics/").status == 404)
    }
  }

  @Test(arguments: [
    // Prometheus 2 and 3, VictoriaMetrics, curl
    (
      "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;"
        + "q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1", true
    ),
    (
      "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
        + "application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;q=0.4,"
        + "text/plain;version=0.0.4;q=0.3,*/*;q=0.2", true
    ),
    ("text/plain;version=0.0.4;q=1,*/*;q=0.1", false), ("*/*", false), ("", false),
    ("application/openmetrics-text", true), ("Application/OpenMetrics-Text ; Q=0.1", true),
    ("application/openmetrics-text, */*", true), ("application/*", false),
    ("application/openmetrics-text;q=0", false),
    ("application/openmetrics-text;version=0.0.1", false),
    ("application/openmetrics-text;version=2.0.0, text/plain;q=0.1", false),
    ("application/openmetrics-text;q=0.4, text/plain;q=0.5", false),
    ("application/openmetrics-text;q=0.5, text/*;q=0.5", true),
    ("application/openmetrics-text;q=0.4, text/plain;version=1.0.0", true),
    ("application/openmetrics-text;q=nonsense", false), ("application/openmetrics-textile", false),
  ])
  func `OpenMetrics is for clients that prefer it`(accept: String, isOpen: Bool) async throws {
    try await withClient { client in
      let answer = try client.get("/metrics", headers: accept.isEmpty ? [:] : ["Accept": accept])
      let format = isOpen ? MetricText.Format.openMetrics : .prometheus
      #expect(answer.status == 200 && answer["Content-Type"] == format.contentType)
      #expect(answer["Vary"] == "Accept, Accept-Encoding")
      #expect(answer.text.hasSuffix("\n# EOF\n") == isOpen)
      #expect(answer.text.contains("# TYPE pictor_http_responses counter\n") == isOpen)
      #expect(answer.text.contains("# TYPE pictor_http_responses_total counter\n") != isOpen)
    }
  }

  @Test func `while the server stops, its figures are still 200`() async throws {
    try await withServer { server in
      let client = try HTTPClient(port: server.port)
      #expect(try MetricsPage(client.get("/metrics").text).value("pictor_draining") == 0)
      server.announceStop()
      let answer = try client.get("/metrics")
      #expect(answer.status == 200)
      #expect(try MetricsPage(answer.text).value("pictor_draining") == 1)
      #expect(try client.get("/stats").status == 503)
    }
  }
}
