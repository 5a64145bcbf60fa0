// SpanTextTests: the JSON of spans, read by another parser.

import Core
import FoundationEssentials
import Testing

@testable import Tracing

struct SpanTextTests {
  private struct Request: Decodable {
    struct Attribute: Decodable {
      struct Value: Decodable {
        let stringValue: String?
        let intValue: String?
        let doubleValue: Double?
      }
      let key: String
      let value: Value
    }
    struct Span: Decodable {
      struct Status: Decodable { let code: Int }
      let traceId, spanId, name, startTimeUnixNano, endTimeUnixNano: String
      let parentSpanId, traceState: String?
      let kind, flags: Int
      let attributes: [Attribute]
      let status: Status
    }
    struct Scope: Decodable { let name, version: String }
    struct ScopeSpans: Decodable {
      let scope: Scope
      let spans: [Span]
    }
    struct Resource: Decodable { let attributes: [Attribute] }
    struct ResourceSpans: Decodable {
      let resource: Resource
      let scopeSpans: [ScopeSpans]
    }
    let resourceSpans: [ResourceSpans]
  }

  private func request(_ spans: [Span]) throws -> Request {
    try JSONDecoder().decode(Request.self, from: Data(SpanText(instance: "one").body(of: spans)))
  }

  @Test func `ids are hexadecimal, times are texts, and enumerations are numbers`() throws {
    // Given
    let field = "00-000bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    #expect(TraceContext(parent: Array(field.utf8)) == nil)
    let context = try #require(
      TraceContext(
        parent: Array("00-000af92f3577b34da6a3ce929d0e0e47-00f067aa0ba902b7-01".utf8),
        state: "a=1"))
    let span = Span(
      context, .server, name: "GET /image", start: 1_700_000_000_123_456_789,
      end: 1_700_000_001_000_000_000, isError: true,
      attributes: [
        SpanAttribute("text", "a \"b\"\\\n\u{1}é"), SpanAttribute("integer", 1 << 60),
        SpanAttribute("number", 0.5), SpanAttribute("infinite", Double.infinity),
      ])
    // When
    let all = try #require(try request([span, makeSpan()]).resourceSpans.first)
    // Then
    let resource = all.resource.attributes.map { [$0.key, $0.value.stringValue] }
    #expect(
      resource == [
        ["service.name", "pictor"], ["service.version", pictorVersion],
        ["service.instance.id", "one"],
      ])
    let scope = try #require(all.scopeSpans.first)
    #expect(scope.scope.name == "pictor" && scope.scope.version == pictorVersion)
    let read = try #require(scope.spans.first)
    #expect(read.traceId == "000af92f3577b34da6a3ce929d0e0e47")
    #expect(read.parentSpanId == "00f067aa0ba902b7" && read.spanId == context.spanID)
    #expect(read.traceState == "a=1" && read.name == "GET /image" && read.kind == 2)
    // Sampled, and the parent is known to be remote.
    #expect(read.flags == 0x301 && read.status.code == 2)
    #expect(read.startTimeUnixNano == "1700000000123456789")
    #expect(read.endTimeUnixNano == "1700000001000000000")
    let values = read.attributes.map(\.value)
    #expect(values[0].stringValue == "a \"b\"\\\n\u{1}é")
    #expect(values[1].intValue == "1152921504606846976")
    #expect(values[2].doubleValue == 0.5 && values[3].doubleValue == 0)
    // A trace that begins here has no parent.
    #expect(scope.spans[1].parentSpanId == nil && scope.spans[1].traceState == nil)
    #expect(scope.spans[1].flags == 0x103 && scope.spans[1].status.code == 0)
  }

  @Test func `long texts are cut, and an end before the start becomes the start`() {
    let long = SpanAttribute("long", String(repeating: "é", count: 1_000))
    #expect(long.value == .text(String(repeating: "é", count: 256)))
    let span = Span(
      TraceContext(), .client, name: "GET", start: 5, end: 3, isError: false, attributes: [])
    #expect(span.start == 5 && span.end == 5)
  }
}
