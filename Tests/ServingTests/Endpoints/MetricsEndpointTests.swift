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

  @Test func `while the server stops, its figures are still 200`() async throws {
    try await withServer(TestProvider()) { server in
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
