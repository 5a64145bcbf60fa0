// FollowedRequestTests: tests of requests that join the work of others without a task.

import Core
import Glibc
import TestSupport
import Testing

@testable import Serving

/// A provider whose flights tests end.
private final class FlyingProvider: ImageProvider {
  typealias Completion = @Sendable (Result<ImageDelivery, ImageError>) -> Void

  /// The requests that follow, and what to call at their end.
  let following = Lock<[(client: LoadClient, completion: Completion)]>([])
  let left = Lock(0)
  /// The number of requests with a task.
  let tasks = Lock(0)
  /// Whether a flight is under way.
  let isFlying = Lock(true)
  /// What to call back with before `follow` returns.
  let atOnce = Lock<ImageDelivery?>(nil)

  func cachedVariant(for key: CacheKey) -> Variant? { nil }
  func deliveryAtOnce(for request: ImageRequest) -> ImageDelivery? { nil }

  func variant(for request: ImageRequest) async throws(ImageError) -> ImageDelivery {
    tasks.withLock { $0 += 1 }
    return makeDelivery(makeVariant(request.key, body: [1, 2, 3]))
  }

  func follow(
    _ request: ImageRequest, for client: LoadClient, completion: @escaping Completion
  ) -> (@Sendable () -> Void)? {
    guard isFlying.withLock({ $0 }) else { return nil }
    if let delivery = atOnce.withLock({ $0 }) {
      completion(.success(delivery))
    } else {
      following.withLock { $0.append((client, completion)) }
    }
    return { self.left.withLock { $0 += 1 } }
  }

  /// Ends the flight.
  func land(_ result: Result<ImageDelivery, ImageError>) {
    for follower in following.withLock({ $0 }) { follower.completion(result) }
  }
}

/// A delivery of many requests.
private func sharedDelivery(_ variant: Variant) -> ImageDelivery {
  let delivery = makeDelivery(variant)
  return ImageDelivery(
    variant: delivery.variant, cacheStatus: delivery.cacheStatus, timings: delivery.timings,
    of: SharedWork(), isShared: true)
}

@Suite(.onOwnThreads) struct FollowedRequestTests {
  private let provider = FlyingProvider()

  private func waitForFollowers(_ count: Int) async throws {
    try await eventually { provider.following.withLock { $0.count } == count }
  }

  /// The fields of a response but those that are each request's own.
  private func common(_ answer: HTTPAnswer) -> [String] {
    answer.headers.filter { !["Date", "X-Request-ID", "Server-Timing", "Age"].contains($0.name) }
      .map { "\($0.name): \($0.value)" }
  }

  @Test func `requests that follow one flight have fields of their own and share the others`()
    async throws
  {
    let variant = makeVariant(try makeRequest().key)
    try await withServer(provider, configure: { $0.workers = 2 }) { server in
      // Given clients of both event loops, with answers of other times and ids of other lengths
      let clients = try (0..<12).map { _ in try HTTPClient(port: server.port) }
      for (number, client) in clients.enumerated() {
        let id = String(repeating: "x", count: number % 3 + 1) + "\(number)"
        try client.send(
          HTTPClient.text(
            number == 5 ? "HEAD" : "GET", target: imageTarget + (number % 4 == 0 ? "&w=4" : ""),
            headers: ["X-Request-ID": id]))
      }
      try await waitForFollowers(clients.count)
      #expect(server.figures.active == clients.count && provider.tasks.withLock { $0 } == 0)
      // When
      provider.land(.success(sharedDelivery(variant)))
      // Then
      provider.isFlying.withLock { $0 = false }
      let alone = try HTTPClient(port: server.port).get(imageTarget)
      for (number, client) in clients.enumerated() {
        let answer = try client.readAnswer(hasBody: number != 5)
        #expect(answer.status == 200)
        #expect(answer.body.count == (number == 5 ? 0 : 18_000))
        #expect(answer["X-Request-ID"]?.hasSuffix("x\(number)") == true)
        let timing = try #require(answer["Server-Timing"])
        #expect(timing.hasPrefix("download;dur=12.000, encode;dur=1.500, total;dur="))
        #expect(answer.headers.map(\.name) == alone.headers.map(\.name))
        #expect(
          common(answer).filter { !$0.hasPrefix("Content-Length") }
            == common(alone).filter { !$0.hasPrefix("Content-Length") })
      }
      #expect(provider.left.withLock { $0 } == 0)
      try await eventually { server.figures.active == 0 }
      let encoding = server.figures.stages[dynamicMember: "encode"]
      #expect(encoding.count == 2, "once, and of the request alone")
    }
  }

  @Test func `each page gets its own origin, and an entity tag is compared`() async throws {
    let variant = makeVariant(try makeRequest().key)
    let pages = ["https://a.example", "https://b.example"]
    try await withServer(provider, configure: { $0.corsOrigins = pages }) { server in
      let clients = try (0..<6).map { _ in try HTTPClient(port: server.port) }
      for (number, client) in clients.enumerated() {
        let tag = number >= 4 ? variant.info.etag.description : "\"other\""
        try client.send(
          HTTPClient.text(
            "GET", target: imageTarget,
            headers: ["Origin": pages[number % 2], "If-None-Match": tag]))
      }
      try await waitForFollowers(clients.count)
      provider.land(.success(sharedDelivery(variant)))
      for (number, client) in clients.enumerated() {
        let answer = try client.readAnswer()
        #expect(answer.status == (number >= 4 ? 304 : 200))
        #expect(answer["Access-Control-Allow-Origin"] == pages[number % 2])
      }
    }
  }

  @Test func `followers get the flight's error`() async throws {
    try await withClient(provider) { client in
      try client.send(HTTPClient.text("GET", target: imageTarget))
      try await waitForFollowers(1)
      provider.land(.failure(.sourceNotFound(status: 404)))
      #expect(try client.readAnswer().status == 404)
    }
  }

  @Test func `a flight that lands at once answers its follower`() async throws {
    let delivery = sharedDelivery(makeVariant(try makeRequest().key, body: [4, 5]))
    provider.atOnce.withLock { $0 = delivery }
    try await withClient(provider) { client throws in
      for _ in 0..<20 { #expect(try client.get(imageTarget).body == [4, 5]) }
    }
  }

  @Test func `a follower whose client has gone, or whose deadline has passed, leaves`()
    async throws
  {
    try await withServer(provider, configure: { $0.requestTimeout = .seconds(2) }) {
      server in
      do {
        let gone = try HTTPClient(port: server.port)
        try gone.send(HTTPClient.text("GET", target: imageTarget))
        try await waitForFollowers(1)
      }
      try await eventually { provider.left.withLock { $0 } == 1 && server.figures.clientsGone == 1 }
      let late = try server.ask()
      #expect(try late.readAnswer().status == 504)
      try await eventually { provider.left.withLock { $0 } == 2 && server.figures.active == 0 }
      // When the flight lands afterwards, no client is answered twice.
      provider.land(.success(sharedDelivery(makeVariant(try makeRequest().key))))
      provider.isFlying.withLock { $0 = false }
      #expect(try late.get(imageTarget).body == [1, 2, 3])
    }
  }

  @Test(arguments: ["&format=auto", "&progressive=1", "&fallback=gone"])
  func `requests that need more than the flight's image have a task`(parameters: String)
    async throws
  {
    let url = try SourceURL(parsing: "https://example.org/gone.png")
    try await withClient(provider) {
      $0.redirectsAuto = true
      $0.fallbacks = ["gone": url]
    } body: { client in
      _ = try client.get(imageTarget + parameters)
      #expect(provider.following.withLock { $0.isEmpty })
    }
  }

  @Test func `a follower may be superseded, and leaves`() async throws {
    try await withServer(provider) { server in
      let clients = try (0..<2).map { _ in try HTTPClient(port: server.port) }
      for (number, client) in clients.enumerated() {
        try client.send(
          HTTPClient.text("GET", target: imageTarget, headers: ["X-Operation-Key": "row 1"]))
        try await waitForFollowers(number + 1)
      }
      #expect(try clients[0].readAnswer().status == 409)
      #expect(provider.left.withLock { $0 } == 1)
      provider.land(.success(sharedDelivery(makeVariant(try makeRequest().key))))
      #expect(try clients[1].readAnswer().status == 200)
    }
  }

  @Test func `without a flight a request has a task`() async throws {
    provider.isFlying.withLock { $0 = false }
    try await withClient(provider) { client throws in
      #expect(try client.get(imageTarget).body == [1, 2, 3])
      #expect(provider.tasks.withLock { $0 } == 1)
    }
  }
}
