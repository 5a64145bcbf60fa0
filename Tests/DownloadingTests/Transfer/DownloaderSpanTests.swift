// Spans of downloads: one for each request to an origin, with the ids that the origin is told.

import Core
import TestSupport
import Testing

@testable import Downloading

@Suite(.onOwnThreads) struct DownloaderSpanTests {
  /// A sink that keeps what it gets.
  private final class Spans: SpanSink {
    let all = Lock<[Span]>([])
    func add(_ span: Span) { all.withLock { $0.append(span) } }
  }

  private let origin: Origin
  private let spans = Spans()
  private let trace = TraceContext()

  init() throws { origin = try Origin() }

  /// Loads a URL, and returns the spans and the load's error.
  private func load(
    _ path: String, trace: TraceContext?,
    _ change: (inout DownloaderConfiguration) -> Void = { _ in }
  ) async throws -> (spans: [Span], error: ImageError?) {
    let downloader = try makeDownloader {
      $0.spans = spans
      $0.traced = [SourcePattern("*")].compactMap { $0 }
      change(&$0)
    }
    let url = try SourceURL(parsing: origin.url(path))
    var failure: ImageError?
    do {
      _ = try await downloader.load(LoadRequest(url: url, trace: trace))
    } catch {
      failure = error
    }
    return (spans.all.withLock { $0 }, failure)
  }

  private func value(_ name: String, of span: Span) -> SpanAttribute.Value? {
    span.attributes.first { $0.name == name }?.value
  }

  @Test func `an origin is told the id of the span of its own request`() async throws {
    // Given
    origin.serve("/a", bytes: Array("image".utf8))
    origin.route("/r", to: .redirect(to: origin.url("/a?sig=secret")))
    let began = WallClock.nanoseconds
    // When
    let found = try await load("/r", trace: trace).spans
    // Then
    #expect(found.count == 2)
    for (path, span) in zip(["/r", "/a"], found) {
      #expect(span.context.traceID == trace.traceID && span.context.parent == trace.span)
      let told = origin.received(at: path).first?.headers["traceparent"]
      #expect(told == span.context.fields.first?.value)
      #expect(span.kind == .client && span.name == "GET" && !span.isError)
      #expect(began <= span.start && span.start <= span.end && span.end <= WallClock.nanoseconds)
      #expect(value("url.full", of: span) == .text(origin.url(path)))
      #expect(value("server.port", of: span) == .integer(origin.port))
    }
    #expect(found[0].end <= found[1].start + 1_000_000)
    #expect(value("http.response.status_code", of: found[0]) == .integer(302))
    #expect(value("http.response.status_code", of: found[1]) == .integer(200))
    #expect(value("http.request.resend_count", of: found[0]) == nil)
    #expect(value("http.request.resend_count", of: found[1]) == .integer(1))
    #expect(value("http.response.body.size", of: found[1]) == .integer(5))
  }

  @Test func `each attempt has a span, and a failed one says why`() async throws {
    origin.route("/a") { $0.number == 1 ? .status(503, headers: ["Retry-After: 0"]) : .status(404) }
    let (found, error) = try await load("/a", trace: trace) {
      $0.retries = 1
      $0.retryDelay = .milliseconds(1)
    }
    #expect(error?.code == "source_not_found")
    #expect(
      found.map { value("http.response.status_code", of: $0) } == [.integer(503), .integer(404)])
    #expect(found.map(\.isError) == [true, true])
    #expect(
      found.map { value("error.type", of: $0) } == [
        .text("source_error"), .text("source_not_found"),
      ])
    #expect(Set(found.map(\.context.span)).count == 2)
  }

  @Test func `a download that is cancelled has a span without a status`() async throws {
    origin.route("/a", to: OriginReply([.silence]))
    let downloader = try makeDownloader { $0.spans = spans }
    let url = try SourceURL(parsing: origin.url("/a"))
    let task = Task { [trace] in try await downloader.load(LoadRequest(url: url, trace: trace)) }
    try await eventually { origin.requests(to: "/a") == 1 }
    task.cancel()
    _ = await task.result
    let found = spans.all.withLock { $0 }
    #expect(found.count == 1)
    let span = try #require(found.first)
    #expect(value("error.type", of: span) == .text("cancelled") && span.isError)
    #expect(value("http.response.status_code", of: span) == nil)
  }

  @Test func `a redirect to a host with an open circuit, or to a refused address, has no span`()
    async throws
  {
    // Given
    let closed = try ClosedPort()
    origin.route("/closed", to: .redirect(to: "http://127.0.0.1:\(closed.port)/a"))
    origin.route("/refused", to: .redirect(to: "http://192.0.2.1/a"))
    let downloader = try makeDownloader {
      $0.spans = spans
      $0.breakerThreshold = 1
    }
    let trace = trace
    func load(_ url: String) async throws -> (spans: [Span], error: ImageError?) {
      spans.all.withLock { $0 = [] }
      let request = LoadRequest(url: try SourceURL(parsing: url), trace: trace)
      var failure: ImageError?
      do { _ = try await downloader.load(request) } catch { failure = error }
      return (spans.all.withLock { $0 }, failure)
    }
    // When a connection fails, it was tried.
    let tried = try await load("http://127.0.0.1:\(closed.port)/a")
    #expect(tried.spans.count == 1 && tried.spans.first?.isError == true)
    // Then
    for path in ["/closed", "/refused"] {
      let found = try await load(origin.url(path))
      #expect(found.error != nil)
      #expect(found.spans.map { value("url.full", of: $0) } == [.text(origin.url(path))])
      #expect(
        found.spans.first.flatMap { value("http.response.status_code", of: $0) } == .integer(302))
    }
  }

  @Test func `a load that is not sampled has no span, and tells its own id`() async throws {
    origin.serve("/a", bytes: Array("image".utf8))
    let unsampled = trace.sampled(false)
    #expect(try await load("/a", trace: unsampled).spans.isEmpty)
    #expect(
      origin.received(at: "/a").first?.headers["traceparent"] == unsampled.fields.first?.value)
    #expect(try await load("/a", trace: nil).spans.isEmpty)
  }
}
