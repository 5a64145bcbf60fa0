// SpanExporterTests: the exporter against collectors that take, refuse, postpone and hang.

import Core
import TestSupport
import Testing

@testable import Tracing

@Suite(.onOwnThreads) struct SpanExporterTests {
  static let path = "/v1/traces"
  let collector: Origin

  init() throws { collector = try Origin() }

  func makeExporter(
    port: Int? = nil, _ change: (inout SpanExporterConfiguration) -> Void = { _ in }
  ) throws -> SpanExporter {
    let port = port ?? collector.port
    var configuration = SpanExporterConfiguration(endpoint: "http://127.0.0.1:\(port)\(Self.path)")
    configuration.delay = .milliseconds(1)
    configuration.policy.delay = .milliseconds(1)
    change(&configuration)
    return try SpanExporter(configuration, log: .silent)
  }

  /// Adds a span and waits until what became of it is counted.
  func export(_ exporter: SpanExporter, until isDone: (Figures) -> Bool) throws {
    exporter.add(makeSpan())
    try blockUntil { isDone(exporter.figures) }
  }

  @Test func `spans are posted as JSON, with the configured fields, on one connection`() throws {
    collector.route(Self.path, to: .ok(Array("{}".utf8), type: "application/json"))
    let exporter = try makeExporter {
      $0.headers = [HeaderField(bearer: "secret")].compactMap(\.self)
    }
    try export(exporter) { $0.exported == 1 }
    try export(exporter) { $0.exported == 2 }
    exporter.stop(within: .seconds(5))
    let received = collector.received(at: Self.path)
    #expect(received.count == 2 && collector.connections == 1)
    let request = try #require(received.first)
    #expect(request.method == "POST" && request.headers["expect"] == nil)
    #expect(request.headers["content-type"] == "application/json")
    #expect(request.headers["authorization"] == "Bearer secret")
    #expect(String(decoding: request.body, as: UTF8.self).contains("\"name\":\"GET /0\""))
    #expect(exporter.figures.exportsSucceeded == 2 && exporter.figures.exportsFailed == 0)
  }

  @Test func `a collector that is overloaded gets the same spans again`() throws {
    collector.route(Self.path) { request in
      request.number < 3 ? .status(503) : .ok([], type: "application/json")
    }
    let exporter = try makeExporter()
    try export(exporter) { $0.exported == 1 }
    exporter.stop(within: .seconds(5))
    let bodies = collector.received(at: Self.path).map(\.body)
    #expect(bodies.count == 3 && Set(bodies).count == 1)
    #expect(exporter.figures.exportsFailed == 2)
  }

  @Test func `spans that are refused, or never taken, are counted and forgotten`() throws {
    collector.route(Self.path, to: .status(400))
    let refused = try makeExporter()
    try export(refused) { $0.rejected == 1 && $0.waiting == 0 }
    #expect(collector.requests(to: Self.path) == 1)
    refused.stop(within: .seconds(5))

    let closed = try ClosedPort()
    let lost = try makeExporter(port: closed.port) { $0.policy.attempts = 3 }
    try export(lost) { $0.lost == 1 && $0.waiting == 0 && $0.exportsFailed == 3 }
    lost.stop(within: .seconds(5))
  }

  @Test func `a redirect is not followed`() throws {
    let other = try Origin()
    collector.route(Self.path, to: .redirect(to: other.url("/"), status: 307))
    let exporter = try makeExporter()
    try export(exporter) { $0.rejected == 1 }
    exporter.stop(within: .seconds(5))
    #expect(other.totalRequests == 0)
  }

  @Test func `a collector that hangs costs a time-out, and a bounded queue`() throws {
    collector.route(Self.path, to: OriginReply([.silence]))
    let exporter = try makeExporter {
      $0.timeout = .milliseconds(50)
      $0.policy.attempts = 1
    }
    try export(exporter) { $0.lost == 1 }
    exporter.stop(within: .seconds(5))

    let full = try makeExporter {
      $0.queueLimit = 10
      $0.batchLimit = 4
    }
    for number in 0..<100 { full.add(makeSpan(number)) }
    #expect(full.figures.waiting <= 10 && full.figures.dropped >= 90)
    full.stop(within: .milliseconds(50))
    try blockUntil { full.figures.waiting == 0 }
    #expect(full.figures.lost == 10 && full.figures.exported == 0)
  }

  @Test func `a stop sends what waits, and does not wait for a retry`() throws {
    collector.route(Self.path) { request in
      request.number == 1
        ? .status(503, headers: ["Retry-After: 200"]) : .ok([], type: "application/json")
    }
    let exporter = try makeExporter()
    try export(exporter) { $0.exportsFailed == 1 }
    exporter.add(makeSpan(1))
    exporter.stop(within: .seconds(30))
    #expect(exporter.figures.exported == 2 && exporter.figures.waiting == 0)
    exporter.add(makeSpan(2))
    #expect(exporter.figures.dropped == 1)
  }
}
