// Traces: which origins get traceparent and tracestate, on which hops.

@testable import Core
import TestSupport
import Testing

@testable import Downloading

@Suite(.onOwnThreads) struct DownloaderTraceTests {
  private let origin: Origin
  private let other: Origin
  private let trace: TraceContext

  init() throws {
    origin = try Origin()
    other = try Origin()
    origin.serve("/a", bytes: Array("image".utf8))
    other.serve("/b", bytes: Array("image".utf8))
    trace = try #require(
      TraceContext(
        parent: Array("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".utf8),
        state: "vendor=1"))
  }

  private func load(
    _ url: String, traced: [String], _ change: (inout DownloaderConfiguration) -> Void = { _ in },
    forwarded: [HeaderField] = []
  ) async throws {
    let downloader = try makeDownloader {
      $0.traced = traced.compactMap { SourcePattern($0) }
      change(&$0)
    }
    _ = try await downloader.load(
      LoadRequest(url: try SourceURL(parsing: url), forwarded: forwarded, trace: trace))
  }

  private func told(_ origin: Origin, at path: String) throws -> [String?] {
    let headers = try #require(origin.received(at: path).last).headers
    return [headers["traceparent"], headers["tracestate"]]
  }

  @Test func `a listed origin gets the trace, with this server's span as the parent`() async throws
  {
    try await load(origin.url("/a"), traced: ["*"])
    let told = try told(origin, at: "/a")
    #expect(told == [trace.fields.first?.value, "vendor=1"])
    let parent = TraceContext(parent: Array((told[0] ?? "").utf8))?.parent
    #expect(parent == trace.span)
  }

  @Test func `a redirect to an origin that is not listed passes no trace`() async throws {
    origin.route("/r", to: .redirect(to: other.url("/b")))
    try await load(origin.url("/r"), traced: ["127.0.0.1:\(origin.port)"])
    #expect(try told(origin, at: "/r") == [trace.fields.first?.value, "vendor=1"])
    #expect(try told(other, at: "/b") == [nil, nil])
  }

  @Test func `the trace takes the place of a rule's and a client's fields`() async throws {
    var rule = HostRule(host: try #require(HostPattern("*")))
    rule.forwardedHeaders = ["traceparent"]
    rule.headers = [try #require(HeaderField("TraceState", value: "rule=1"))]
    let rules = [rule]
    let client = try #require(HeaderField("Traceparent", value: "client"))
    try await load(
      origin.url("/a"), traced: ["*"], { $0.hostRules = rules }, forwarded: [client])
    #expect(try told(origin, at: "/a") == [trace.fields.first?.value, "vendor=1"])
    try await load(origin.url("/a"), traced: [], { $0.hostRules = rules }, forwarded: [client])
    #expect(try told(origin, at: "/a") == ["client", "rule=1"])
  }
}
