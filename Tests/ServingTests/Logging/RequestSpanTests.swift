// RequestSpanTests: which requests have a span, with which ids, times and attributes.

import Core
import TestSupport
import Testing

@testable import Serving

@Suite(.onOwnThreads) struct RequestSpanTests {
  private static let traceID = "4bf92f3577b34da6a3ce929d0e0e4736"
  private static let parent = "00-\(traceID)-00f067aa0ba902b7-01"
  private static let unsampled = "00-\(traceID)-00f067aa0ba902b7-00"

  private static let later = "01-\(traceID)-00f067aa0ba902b7-01-x"

  /// A sink that keeps what it gets.
  private final class Spans: SpanSink {
    let all = Lock<[Span]>([])
    func add(_ span: Span) { all.withLock { $0.append(span) } }
  }

  private let spans = Spans()
  private let provider = TestProvider { request throws(ImageError) in
    switch request.transform.sizing.width {
    case 7: throw .sourceNotFound(status: 404)
    case 8: throw .internal(detail: "a fault")
    default: return makeDelivery(makeVariant(request.key))
    }
  }
  /// The traces that the manager was told.
  private var told: [TraceContext?] { provider.requests.withLock { $0.map(\.options.trace) } }

  /// Sends requests to a server with an exporter, and returns the spans of them all.
  private func spans(
    share: Double = 1, trusts: Bool = false, log: Log = Log(level: .error),
    propagates: Bool = false, _ body: (HTTPClient) throws -> Void
  ) async throws -> [Span] {
    provider.keep(makeVariant(try makeRequest().key))
    try await withServer(provider, log: log) {
      $0.spans = spans
      $0.sampledShare = share
      $0.trustedProxies.networks = trusts ? [CIDR("127.0.0.0/8")].compactMap { $0 } : []
      $0.propagatesTraces = propagates
    } body: { server in
      try body(try HTTPClient(port: server.port))
    }
    return spans.all.withLock { $0 }
  }

  private func text(_ name: String, of span: Span?) -> String? {
    switch span?.attributes.first(where: { $0.name == name })?.value {
    case .text(let text): text
    case .integer(let number): "\(number)"
    case .number(let number): "\(number)"
    case nil: nil
    }
  }

  @Test func `hits, misses and failures have spans with the outcome`() async throws {
    let began = WallClock.nanoseconds
    let miss = "/image?url=https://example.org/miss.png&w="
    let found = try await spans { (client: HTTPClient) throws in
      #expect(try client.get(imageTarget).status == 200)
      #expect(try client.get(miss + "5&sig=0secret").status == 200)
      #expect(try client.get(miss + "7").status == 404)
      #expect(try client.get(miss + "8").status == 500)
      #expect(try client.get("/https://user:secret@example.org/a").status == 404)
    }
    #expect(found.count == 5)
    #expect(
      found.map { text("http.response.status_code", of: $0) } == [
        "200", "200", "404", "500", "404",
      ])
    #expect(found.map(\.name) == Array(repeating: "GET /image", count: 4) + ["GET"])
    #expect(found.map(\.isError) == [false, false, false, true, false])
    #expect(found.map { text("error.type", of: $0) } == [nil, nil, nil, "internal", nil])
    #expect(text("pictor.cache_status", of: found.first)?.contains("hit; detail=memory") == true)
    #expect(text("pictor.error", of: found[2]) == "source_not_found")
    #expect(text("pictor.stage.download_ms", of: found[1]) == "12.0")
    for span in found {
      #expect(span.kind == .server && span.context.parent == nil && span.context.isSampled)
      #expect(began <= span.start && span.start <= span.end && span.end <= WallClock.nanoseconds)
      #expect(text("http.request.method", of: span) == "GET")
      #expect(text("url.scheme", of: span) == "http")
      #expect(text("network.protocol.version", of: span) == "1.1")
    }
    #expect(found.prefix(4).allSatisfy { text("url.path", of: $0) == "/image" })
    #expect(!"\(found)".contains("secret"))
    #expect(Set(found.map(\.context.traceID)).count == 5)
  }

  @Test(arguments: [0.0, 1])
  func `exemplars name the traces of recorded hits, misses and stages`(share: Double) async throws {
    var page = ""
    let found = try await spans(share: share) { (client: HTTPClient) throws in
      _ = try client.get(imageTarget)
      _ = try client.get("/image?url=https://example.org/miss.png")
      let accept: KeyValuePairs = ["Accept": "application/openmetrics-text"]
      page = try client.get("/metrics", headers: accept).text
    }
    let lines = page.split(separator: "\n").filter { $0.contains("trace_id") }
    for labels in [
      "duration_seconds_bucket{path=\"memory_hit\"", "duration_seconds_bucket{path=\"other\"",
      "stage_duration_seconds_bucket{stage=\"download\"",
    ] {
      #expect(lines.count { $0.contains(labels) } == (share == 1 ? 1 : 0), "\(labels)")
    }
    let ids = Set(found.prefix(2).map(\.context.traceID))
    for line in lines {
      #expect(ids.contains { line.contains(" # {trace_id=\"\($0)\"} ") }, "\(line)")
    }
  }

  @Test func `log, manager and span name the same ids`() async throws {
    let file = try LogFile(.json)
    let found = try await spans(log: file.log(level: .info)) { (client: HTTPClient) throws in
      _ = try client.get(
        "/image?url=https://example.org/a.png", headers: ["traceparent": Self.unsampled])
      _ = try client.get("/image?url=https://example.org/a.png")
    }
    #expect(found.count == 2 && told == found.map(\.context))
    let lines = try file.lines().filter { $0.contains("\"request\"") }
    #expect(lines.count == 2)
    for (line, span) in zip(lines, found) {
      #expect(line.contains("\"trace_id\":\"\(span.context.traceID)\""), "\(line)")
    }
    // The client's trace, but this server's decision.
    #expect(found.first?.context.traceID == Self.traceID)
    #expect(found.first?.context.parentID == "00f067aa0ba902b7")
    #expect(found.first?.context.isSampled == true)
  }

  @Test(arguments: [
    // Only a trusted proxy decides.
    (1.0, true, unsampled, 0), (0.0, true, parent, 1), (0.0, false, parent, 0),
    (1.0, false, unsampled, 1), (0.0, true, "00-1-2-01", 0), (1.0, true, "00-1-2-01", 1),
    (0.0, true, "", 0),
  ])
  func `a trusted proxy decides what is recorded, and for all others the share`(
    share: Double, trusts: Bool, field: String, count: Int
  ) async throws {
    let found = try await spans(share: share, trusts: trusts) { (client: HTTPClient) throws in
      let headers: KeyValuePairs = ["traceparent": field]
      #expect(try client.get(imageTarget, headers: field.isEmpty ? [:] : headers).status == 200)
    }
    #expect(found.count == count)
  }

  @Test(arguments: [(0.0, parent, 0), (1.0, unsampled, 1), (0.0, later, 0)])
  func `a trusted proxy that sends two traceparents decides nothing`(
    share: Double, field: String, count: Int
  ) async throws {
    let found = try await spans(share: share, trusts: true) { (client: HTTPClient) throws in
      let headers: KeyValuePairs = ["traceparent": field, "TraceParent": field]
      #expect(try client.get(imageTarget, headers: headers).status == 200)
    }
    #expect(found.count == count && found.allSatisfy { $0.context.parent == nil })
  }

  @Test func `a request that is not recorded passes a flag that says so`() async throws {
    let found = try await spans(share: 0, propagates: true) { (client: HTTPClient) throws in
      _ = try client.get(
        "/image?url=https://example.org/a.png", headers: ["traceparent": Self.parent])
    }
    #expect(found.isEmpty)
    let context = try #require(told.first ?? nil)
    #expect(context.traceID == Self.traceID && !context.isSampled)
  }

  @Test func `probes are not picked`() async throws {
    let found = try await spans { (client: HTTPClient) throws in
      #expect(try client.get("/livez").status == 200)
    }
    #expect(found.isEmpty)
  }

  @Test func `a share is picked at random`() {
    var sampler = TraceSampler()
    let threshold = TraceSampler.threshold(of: 0.25)
    let picked = (0..<40_000).count { _ in sampler.picks(below: threshold) }
    #expect((9_000...11_000).contains(picked))
    #expect(!(0..<1_000).contains { _ in sampler.picks(below: TraceSampler.threshold(of: 0)) })
    #expect((0..<1_000).allSatisfy { _ in sampler.picks(below: TraceSampler.threshold(of: 1)) })
  }

  @Test(arguments: [
    ("example.com", "example.com", nil), ("example.com:8080", "example.com", "8080"),
    ("[::1]:80", "[::1]", "80"), ("[::1]", "[::1]", nil), ("a b", nil, nil), ("", nil, nil),
    ("a:b", nil, nil), (":80", nil, nil), ("a:70000", nil, nil), ("a<script>", nil, nil),
  ])
  func `the server's address is that of Host`(field: String, address: String?, port: String?) {
    let found = ServerSpan.address(field)
    #expect(found.first?.value == address.map { .text($0) })
    #expect(found.dropFirst().first?.value == port.flatMap { Int($0) }.map { .integer($0) })
  }
}
