// StreamedImageTests: tests of images that are sent while they are received.

import Core
import FoundationEssentials
import TestSupport
import Testing

@testable import Serving

/// A streaming body controlled by a test.
final class TestBody: StreamingBody {
  private struct State {
    var bytes: [UInt8] = []
    var isWhole: Bool?
  }

  private let state = Lock(State())
  private let observers = Observers<Void>()
  let origin = OriginResponse(status: 200)
  let expected: Int?
  let version: UInt64 = 1

  init(expected: Int? = nil) { self.expected = expected }

  var isComplete: Bool { state.withLock { $0.isWhole ?? false } }

  func add(_ bytes: [UInt8]) {
    state.withLock { $0.bytes += bytes }
    observers.tell(())
  }

  func end(isWhole: Bool) {
    state.withLock { $0.isWhole = isWhole }
    observers.tell(())
  }

  func read(at position: Int, into buffer: UnsafeMutableRawBufferPointer) -> PartialRead {
    state.withLock { state in
      let rest = state.bytes[position...].prefix(buffer.count)
      buffer.copyBytes(from: rest)
      guard rest.isEmpty else { return .bytes(rest.count) }
      return switch state.isWhole {
      case nil: .notYet
      case true?: .end
      case false?: .failed
      }
    }
  }

  func observe(_ observer: @escaping @Sendable () -> Void) -> Observation {
    observers.add { _ in observer() }
  }
}

/// A provider of one image that is still being received, for clients that accept streaming.
final class ComingProvider: ImageProvider {
  let body: TestBody
  /// The number of released participants.
  let ended = Counter()

  init(_ body: TestBody = TestBody()) { self.body = body }

  var delivery: StreamingDelivery {
    StreamingDelivery(
      body: body, info: makeInfo(),
      cacheStatus: .miss(.uriMiss, stored: false, collapsed: false, originStatus: 200)
    ) { [ended] in ended.add() }
  }

  func cachedVariant(for key: CacheKey) -> Variant? { nil }
  func deliveryAtOnce(for request: ImageRequest) -> ImageDelivery? { nil }
  func variant(for request: ImageRequest) async throws(ImageError) -> ImageDelivery {
    makeDelivery(makeVariant(request.key, body: [1, 2, 3]))
  }
  func answer(to request: ImageRequest) async throws(ImageError) -> ImageAnswer {
    .coming(delivery)
  }
}

@Suite(.onOwnThreads) struct StreamedImageTests {
  private let target = imageTarget + "&format=jpeg&progressive=1"
  private let key: KeyValuePairs = ["X-Operation-Key": "row 7"]

  @Test func `an HTTP/1.0 client receives a complete image instead of a stream`() async throws {
    let provider = ComingProvider()
    try await withClient(provider) { client in
      try client.send("GET \(target) HTTP/1.0\r\nHost: t\r\n\r\n")
      let answer = try client.readAnswer()
      #expect(answer.body == [1, 2, 3] && answer["Content-Length"] == "3")
      #expect(provider.ended.value == 0)
    }
  }

  @Test func `an HTTP/1.1 client receives a stream whose truncation it can detect`()
    async throws
  {
    for more: KeyValuePairs<String, String> in [[:], ["Connection": "close"]] {
      let provider = ComingProvider()
      provider.body.add([1, 2, 3])
      try await withClient(provider) { client in
        try client.send(HTTPClient.text("GET", target: target, headers: more))
        let begin = try client.read(until: "\r\n3\r\n")
        #expect(begin.contains("Transfer-Encoding: chunked"))
        provider.body.end(isWhole: false)
        let rest = try client.readToEnd()
        #expect(rest == [1, 2, 3, 0x0d, 0x0a])
        try await eventually { provider.ended.value == 1 }
      }
    }
  }

  @Test(arguments: [nil, 1 << 30])
  func `a client that does not read a stream is disconnected`(length: Int?) async throws {
    let provider = ComingProvider(TestBody(expected: length))
    // More than the kernel buffers for it.
    provider.body.add([UInt8](repeating: 7, count: 16 << 20))
    try await withServer(provider) {
      $0.answerTimeout = .milliseconds(100)
      // The wait for the next bytes, also the first ones, which a busy machine needs.
      $0.requestTimeout = .seconds(5)
      $0.minimumRate = 1 << 40
      $0.rateWindow = .zero
    } body: { server in
      let client = try HTTPClient(port: server.port, receiveBuffer: 4_096)
      try client.send(HTTPClient.text("GET", target: target))
      try await eventually { server.figures.byOrigin["origin"] == 1 }
      try await eventually { server.figures.connections == 0 }
      try await eventually { provider.ended.value == 1 }
    }
  }

  @Test func `a later request with the same operation key aborts a stream`() async throws {
    let provider = ComingProvider()
    provider.body.add([1, 2, 3])
    try await withServer(provider) { server in
      let older = try server.ask(target, headers: key)
      _ = try older.read(until: "\r\n3\r\n")
      let newer = try HTTPClient(port: server.port)
      #expect(try newer.get(imageTarget, headers: key).status == 200)
      #expect(try older.readToEnd() == [1, 2, 3, 0x0d, 0x0a])
      try await eventually { provider.ended.value == 1 }
    }
  }

  @Test func `the operation key of a finished stream is free`() async throws {
    let provider = ComingProvider()
    provider.body.add([1, 2, 3])
    provider.body.end(isWhole: true)
    try await withServer(provider) { server in
      let client = try HTTPClient(port: server.port)
      for _ in 0..<3 {
        #expect(try client.get(target, headers: key).body == [1, 2, 3])
      }
      try await eventually { server.figures.bytesSent == 9 && provider.ended.value == 3 }
    }
  }

  @Test func `an aborted stream is logged with its sent bytes and the reason`() async throws {
    struct Line: Decodable {
      let error, detail, cache: String?
      let status, bytes: Int?
    }
    let file = try LogFile()
    let log = file.log()
    for isOrigins in [true, false] {
      let provider = ComingProvider()
      provider.body.add([1, 2, 3])
      try await withServer(provider, log: log) { server in
        let client = try server.ask(target)
        _ = try client.read(until: "\r\n3\r\n")
        if isOrigins { provider.body.end(isWhole: false) } else { client.close() }
        try await eventually { provider.ended.value == 1 && server.figures.active == 0 }
        try await eventually { server.figures.bytesSent == 3 }
      }
    }
    let lines = try file.lines()
      .filter { $0.contains("\"request\"") }
      .map { try JSONDecoder().decode(Line.self, from: Data($0.utf8)) }
    #expect(lines.map(\.status) == [200, 200])
    #expect(lines.map(\.bytes) == [3, 3])
    #expect(lines.map(\.error) == ["source_incomplete", "cancelled"])
    #expect(lines.allSatisfy { $0.cache == "pictor; fwd=uri-miss; fwd-status=200" })
  }
}

/// The handler alone, with calls like those of libmicrohttpd.
@Suite(.onOwnThreads) struct CompletionTests {
  private let handler: RequestHandler
  private let client: Connection
  private let wake: WakeSignal

  init() throws {
    wake = try WakeSignal()
    let figures = FiguresCache(
      lifetime: .zero, compute: { makeStats(Figures(), isDraining: $0) })
    handler = RequestHandler(
      configuration: ServerConfiguration(),
      shared: SharedParts(
        provider: TestProvider(), services: AdminServices(TestServices()),
        figures: ServerFigures(),
        figuresCache: figures, metricsCache: figures, openMetricsCache: figures,
        gate: OperatorGate([]), log: Log(level: .error)),
      monitor: try ConnectionMonitor(limit: 1, tick: 1_000))
    client = handler.opened(
      descriptor: -1, peer: nil,
      on: EventLoopState(
        index: 0, policy: handler.latestPolicy.copy(), wake: wake))
  }

  @Test func `a stream that begins after its client disconnects is released`() async throws {
    let provider = ComingProvider()
    // The request is not watched, so the fake connection is never resumed.
    let request = SuspendedRequest(
      number: 1, connection: try #require(OpaquePointer(bitPattern: 16)), descriptor: -1,
      deadline: .max, monitor: handler.monitor, wake: wake, share: nil)
    request.start({ .streaming(provider.delivery) }, joining: nil)
    try await eventually { request.outcome != nil }
    client.suspendedRequest = request
    handler.completed(on: client, nil, isWhole: false)
    #expect(provider.ended.value == 1)
  }

  @Test func `an idle connection keeps no request body`() throws {
    client.body.begin(.memory(limit: 10), memory: .unlimited)
    [UInt8]([1, 2, 3]).withUnsafeBytes { _ = client.body.take($0) }
    handler.completed(on: client, nil, isWhole: true)
    #expect(client.body.count == 0)
    #expect(try client.body.bytes().isEmpty)
  }
}
