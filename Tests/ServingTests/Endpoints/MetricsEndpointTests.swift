// MetricsEndpointTests: what clients of /metrics see: its form, its listener, its lifetime.

import Model
import Platform
import Telemetry
import TestSupport
import Testing

@testable import Serving

@Suite(.onOwnThreads) struct MetricsEndpointTests {
  @Test func `the answer is Prometheus's text`() async throws {
    try await withServer(TestProvider()) { server in
      let client = try HTTPClient(port: server.port)
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

  @Test func `with a listener for operators, clients do not have it`() async throws {
    for tokens in [[], ["correct-horse-battery"]] {
      try await withServer(
        TestProvider(),
        configure: {
          $0.operatorAddress = ListenAddress("127.0.0.1:0")
          $0.operatorTokens = tokens
        }
      ) { server in
        let headers: KeyValuePairs = ["Authorization": "Bearer correct-horse-battery"]
        let own = try HTTPClient(port: try #require(server.operatorPort))
        // Like `/stats`, it needs no token there. Clients do not get it for a token.
        #expect(try own.get("/metrics").status == 200)
        #expect(try own.get("/stats").status == 200)
        #expect(try own.get("/metrics", headers: headers).status == 200)
        #expect(try HTTPClient(port: server.port).get("/metrics").status == 404)
        #expect(try HTTPClient(port: server.port).get("/metrics", headers: headers).status == 404)
      }
    }
  }

  @Test func `its figures are computed once in their lifetime`() async throws {
    let computed = Counter()
    let count = { @Sendable (figures: Figures, isDraining: Bool) in
      computed.add()
      return makeStats(figures, isDraining: isDraining)
    }
    try await withServer(
      TestProvider(), stats: count, configure: { $0.statsLifetime = .seconds(3_600) }
    ) { server in
      let first = try HTTPClient(port: server.port).get("/metrics")
      for _ in 0..<20 {
        #expect(try HTTPClient(port: server.port).get("/metrics").body == first.body)
      }
      #expect(computed.value == 1)
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

  @Test func `hits, misses, errors and their stages are counted apart`() async throws {
    let provider = TestProvider { request throws(ImageError) in
      guard request.transform.sizing.width != 3 else { throw .sourceNotFound(status: 404) }
      return makeDelivery(makeVariant(request.key))
    }
    provider.keep(makeVariant(try makeRequest().key))
    try await withServer(provider) { server in
      let client = try HTTPClient(port: server.port)
      for _ in 0..<3 { #expect(try client.get(imageTarget).status == 200) }
      #expect(try client.get(imageTarget + "&w=2").status == 200)
      #expect(try client.get(imageTarget + "&w=3").status == 404)
      let figures = server.figures
      #expect(figures.byOutcome.hit.memory == 3)
      #expect(figures.byOutcome.miss == ["none": 1] && figures.byOutcome.error == ["none": 1])
      #expect(figures.byOutcome.staleHit.counts.values.reduce(0, +) == 0)
      #expect(figures.errors == ["source_not_found": 1])
      for stage in Timings.Stage.allCases {
        let figures = figures.stages[dynamicMember: stage.rawValue]
        #expect(figures.count == (["download", "encode"].contains(stage.rawValue) ? 1 : 0))
      }
      #expect(figures.stages.download.sumSeconds == 0.012)
    }
  }
}
