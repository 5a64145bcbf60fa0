// HostileCollectorTests: the exporter against endless, senseless and rude collectors.

import Core
import TestSupport
import Testing

@testable import Tracing

extension SpanExporterTests {
  /// Returns an exporter that waits long for an answer, and tries twice.
  private func makePatient(
    _ change: (inout SpanExporterConfiguration) -> Void = { _ in }
  ) throws -> SpanExporter {
    try makeExporter {
      $0.timeout = .seconds(60)
      $0.policy.attempts = 2
      change(&$0)
    }
  }

  @Test func `of an endless body only the beginning is read, and the status counts`() throws {
    // Given
    collector.route(Self.path, to: .endlessBody)
    let exporter = try makePatient()
    // When the collector has taken the batch, then it does not get it again
    try export(exporter) { $0.exported == 1 }
    #expect(collector.requests(to: Self.path) == 1)
    // And the connection is not used again
    try blockUntil("the connection is closed") { collector.clientsGone == 1 }
    exporter.stop(within: .seconds(5))
    #expect(exporter.figures.exportsFailed == 0)
  }

  @Test func `endless header fields and interim responses are a failure`() throws {
    let interim = Array("HTTP/1.1 103 Early Hints\r\nX: y\r\n\r\n".utf8)
    for reply in [OriginReply.endlessHeaders, OriginReply([.sendForever(interim)])] {
      collector.route(Self.path, to: reply)
      let exporter = try makePatient()
      try export(exporter) { $0.lost == 1 }
      #expect(exporter.figures.exportsFailed == 2 && exporter.figures.waiting == 0)
      exporter.stop(within: .seconds(5))
    }
  }

  @Test(arguments: [
    OriginReply.resetBeforeHead, .reset(after: [1], declaring: 100),
    .truncated([1], declaring: 100), .truncatedChunked([1]), OriginReply([.close]),
    // The beginning of HTTP/2 (RFC 9113, section 3.4), of TLS, and no HTTP at all
    OriginReply([.send([0, 0, 0, 4, 0, 0, 0, 0, 0]), .close]),
    OriginReply([.send([0x15, 3, 3, 0, 2, 2, 10]), .close]),
    OriginReply([.send(Array("220 mail.example ESMTP\r\n".utf8)), .close]),
    OriginReply([.send(Array("HTTP/1.1 101 Yes\r\nUpgrade: h2c\r\n\r\n".utf8)), .close]),
  ])
  func `an answer that breaks off, or is no HTTP, is tried again`(reply: OriginReply) throws {
    collector.route(Self.path) { request in
      request.number == 1 ? reply : .ok(Array("{}".utf8), type: "application/json")
    }
    let exporter = try makePatient()
    try export(exporter) { $0.exported == 1 }
    #expect(exporter.figures.exportsFailed == 1 && exporter.figures.lost == 0)
    exporter.stop(within: .seconds(5))
  }

  @Test(arguments: [
    "99999999999999999999999", "9223372036854775807", "-9223372036854775808", "-1", "1e9", "x", "",
    "Fri, 31 Dec 9999 23:59:59 GMT", "Thu, 01 Jan 1970 00:00:00 GMT",
  ])
  func `an absurd Retry-After stops neither the exporter nor its end`(field: String) throws {
    collector.route(Self.path) { request in
      request.number == 1
        ? .status(429, headers: ["Retry-After: \(field)"]) : .ok([], type: "application/json")
    }
    let exporter = try makePatient()
    try export(exporter) { $0.exportsFailed == 1 }
    exporter.stop(within: .seconds(60))
    #expect(exporter.figures.exported == 1 && exporter.figures.waiting == 0)
  }

  @Test(arguments: [
    String(repeating: "[", count: 60_000), String(repeating: "{\"partialSuccess\":", count: 3_000),
    "{\"partialSuccess\":{\"rejectedSpans\":1e400}}",
    "{\"partialSuccess\":{\"rejectedSpans\":\"99999999999999999999\"}}",
    "{\"partialSuccess\":{\"rejectedSpans\":[[]]}}", "\u{0}\u{1}", "{\"partialSuccess\":null}",
  ])
  func `an accepting status counts, whatever its body`(body: String) throws {
    collector.route(Self.path, to: .ok(Array(body.utf8), headers: ["Content-Encoding: gzip"]))
    let exporter = try makePatient()
    try export(exporter) { $0.exported == 1 }
    exporter.stop(within: .seconds(5))
    #expect(exporter.figures.exportsSucceeded == 1)
  }

  @Test func `a head that arrives byte by byte, or a collector that reads nothing, ends in time`()
    throws
  {
    let head = Array(
      "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX: \(String(repeating: "y", count: 5_000))".utf8)
    collector.route(Self.path, to: OriginReply([.trickle(head, milliseconds: 10)]))
    let deaf = try Origin(answers: false)
    for endpoint in [collector.url(Self.path), deaf.url(Self.path)] {
      let exporter = try makePatient {
        $0.endpoint = endpoint
        $0.timeout = .milliseconds(100)
        $0.batchLimit = 2_000
      }
      let text = String(repeating: "x", count: 500)
      for number in 0..<2_000 {
        exporter.add(makeSpan(number, attributes: [SpanAttribute("text", text)]))
      }
      try blockUntil("the spans are lost") { exporter.figures.lost == 2_000 }
      exporter.stop(within: .seconds(5))
      #expect(exporter.figures.exported == 0 && exporter.figures.waiting == 0)
    }
  }

  @Test func `a stop ends in the middle of a request, and of many`() throws {
    let gate = Gate()
    collector.route(Self.path, to: .hold(gate, then: .ok([], type: "application/json")))
    let exporter = try makePatient {
      $0.batchLimit = 2
      $0.queueLimit = 20
    }
    for number in 0..<20 { exporter.add(makeSpan(number)) }
    try blockUntil("a request is in progress") { collector.requests(to: Self.path) == 1 }
    exporter.stop(within: .milliseconds(100))
    try blockUntil("all spans are counted") { exporter.figures.waiting == 0 }
    #expect(exporter.figures.lost + exporter.figures.exported == 20)
    gate.open()
  }
}
