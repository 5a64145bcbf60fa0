// TraceTests: a trace through the program: what the origin is told, and what the access log says.

import TestSupport
import Testing

@Suite(.onOwnThreads) final class TraceTests: OriginSuite {
  private static let traceID = "4bf92f3577b34da6a3ce929d0e0e4736"
  private static let parent = "00-\(traceID)-00f067aa0ba902b7-01"

  @Test func `listed origins get the trace, and the access log names it`() throws {
    // Given
    for path in ["/told/a.jpg", "/other/b.jpg"] {
      origin.serve(path, bytes: try TestImages.jpeg(width: 16, height: 16))
    }
    let path = folder.path + "/access.log"
    let pictor = try PictorProcess(
      in: folder,
      [
        "--tracing.propagate", "127.0.0.1:\(origin.port)/told", "--log.access_path", path,
        "--log.access_format", "json", "--log.requests", "all",
      ])
    // When: two downloads, a memory hit, a missing image, and a hit without a trace.
    let headers: KeyValuePairs = ["traceparent": Self.parent, "tracestate": "a=1"]
    for target in ["/told/a.jpg", "/other/b.jpg", "/told/a.jpg", "/missing.jpg"] {
      let status = try pictor.connect().get(origin.target(target), headers: headers).status
      #expect(status == (target == "/missing.jpg" ? 404 : 200))
    }
    #expect(try pictor.connect().get(origin.target("/told/a.jpg")).status == 200)
    // Then
    let told = try #require(origin.received(at: "/told/a.jpg").first).headers
    let field = try #require(told["traceparent"])
    #expect(field.hasPrefix("00-\(Self.traceID)-") && field.hasSuffix("-01"))
    #expect(field != Self.parent && told["tracestate"] == "a=1")
    let other = try #require(origin.received(at: "/other/b.jpg").first).headers
    #expect(other["traceparent"] == nil && other["tracestate"] == nil)
    #expect(origin.received(at: "/told/a.jpg").count == 1)

    #expect(try pictor.end() == 0)
    let lines = contents(of: path).split(separator: "\n").filter { $0.contains("/image?") }
    #expect(
      lines.map { $0.contains("\"trace_id\":\"\(Self.traceID)\"") } == [
        true, true, true, true, false,
      ])
  }

  @Test func `a collector whose certificate is not trusted gets no span, and requests go on`()
    async throws
  {
    // Given
    let collector = try await Nginx(passing: ["/": origin.port])
    let pictor = try PictorProcess(
      in: folder, ["--tracing.endpoint", collector.url("/v1/traces"), "--tracing.sample", "1"])
    // When
    for _ in 0..<3 { #expect(try pictor.get("/missing").status == 404) }
    // Then the stop tries to send them, and says why it cannot.
    #expect(try pictor.end() == 0)
    let line = pictor.log.split(separator: "\n").first { $0.contains("spans are not exported") }
    #expect(line?.contains("certificate") == true, "\(pictor.log)")
    #expect(origin.received(at: "/v1/traces").isEmpty)
  }
}
