// MemoryHitTests: tests of memory hits over a socket.

import Core
import TestSupport
import Testing

@testable import Serving

@Suite(.onOwnThreads) struct MemoryHitTests {
  @Test func `a hit has the body and every header of the contract`() async throws {
    let provider = TestProvider()
    let body = (0..<18_000).map { UInt8(truncatingIfNeeded: $0) }
    provider.keep(makeVariant(try makeRequest().key, body: body, info: makeInfo(receivedAgo: 7)))
    try await withClient(provider) { client in
      let answer = try client.get(imageTarget)
      #expect(answer.status == 200)
      #expect(answer.body == body)
      #expect(answer["Content-Type"] == "image/jpeg")
      #expect(answer["Content-Length"] == "18000")
      #expect(answer["ETag"] == "\"0123abcd\"")
      #expect(answer["Last-Modified"] == "Sun, 06 Nov 1994 08:49:37 GMT")
      #expect(answer["Cache-Control"] == "public, max-age=3600")
      #expect(["7", "8", "9", "10", "11"].contains(answer["Age"] ?? ""))
      #expect(answer["Content-DPR"] == "2")
      #expect(answer["X-Scaled-Down"] == nil)
      #expect(answer["Cache-Status"] == "pictor; hit; detail=memory")
      #expect(answer["Server-Timing"]?.wholeMatch(of: /total;dur=\d\.\d\d\d/) != nil)
      #expect(answer["X-Request-ID"]?.wholeMatch(of: /[0-9a-f]{16}/) != nil)
      #expect(answer["X-Content-Type-Options"] == "nosniff")
      #expect(answer["Content-Security-Policy"] == "default-src 'none'; sandbox")
      #expect(answer["Content-Disposition"] == "inline; filename=\"photo.jpg\"")
      #expect(answer["Access-Control-Allow-Origin"] == "*")
      #expect(answer["Connection"] == nil)
      let date = try #require(answer["Date"].flatMap { HTTPDate.parse($0) })
      #expect(abs(date.seconds - UnixTime.now.seconds) <= 5)
      let names = answer.headers.map(\.name)
      #expect(Set(names).count == names.count)
      #expect(provider.asked.value == 0)
    }
  }

  @Test(arguments: [
    (Freshness(receivedAt: .now, lifetime: 60), "public, max-age=60"),
    (
      Freshness(receivedAt: .now, lifetime: 60, mayBeStale: false),
      "public, max-age=60, must-revalidate"
    ),
    (Freshness(receivedAt: .now, lifetime: 60, isImmutable: true), "public, max-age=60, immutable"),
  ])
  func `Cache-Control passes on the origin's restrictions`(
    _ freshness: Freshness, control: String
  ) async throws {
    let provider = TestProvider()
    var info = makeInfo()
    info.freshness = freshness
    provider.keep(makeVariant(try makeRequest().key, info: info))
    try await withClient(provider) { client in
      let answer = try client.get(imageTarget)
      #expect(answer["Cache-Control"] == control)
    }
  }

  @Test(arguments: [
    "", "Connection: close\r\n", "If-None-Match: \"0123abcd\"\r\n", "Origin: https://b.example\r\n",
    "Origin: https://other.example\r\n",
  ])
  func `response heads written as a block and field by field are equal`(
    header: String
  ) async throws {
    // Given hits, errors and statistics, requested in both styles
    func answers(_ style: HeadStyle) async throws -> [[String]] {
      let provider = TestProvider()
      // The age has the same number of digits for the whole test.
      provider.keep(makeVariant(try makeRequest().key, info: makeInfo(receivedAgo: 100)))
      return try await withServer(
        provider,
        configure: { configuration in
          configuration.headStyle = style
          configuration.corsOrigins = ["https://a.example", "https://b.example"]
        }
      ) { server in
        try ["GET \(imageTarget)", "HEAD \(imageTarget)", "GET /nothing", "GET /image?x=1"]
          .flatMap { request in
            try (0..<3).map { _ in
              let client = try HTTPClient(port: server.port)
              try client.send("\(request) HTTP/1.1\r\nHost: t\r\n\(header)\r\n")
              let answer = try client.readAnswer(hasBody: !request.hasPrefix("HEAD"))
              #expect(answer["Date"].flatMap { HTTPDate.parse($0) } != nil)
              #expect(answer["X-Request-ID"]?.wholeMatch(of: /[0-9a-f]{16}/) != nil)
              let changing = ["Date", "X-Request-ID", "Server-Timing", "Age"]
              return ["\(answer.status)"]
                + answer.headers.map {
                  changing.contains($0.name) ? $0.name : "\($0.name): \($0.value)"
                }
                // In a block, it fills the place of another page's origin.
                .filter { $0 != "Vary: Origin" || answer["Vary"] == "Origin" }.sorted()
            }
          }
      }
    }
    // When
    let (blocks, fields) = (try await answers(.block), try await answers(.fields))
    // Then
    #expect(blocks == fields)
  }

  @Test func `heads are written in place only with tested versions of libmicrohttpd`() {
    for tested in ["0.9.75", "1.0.1"] { #expect(HeadStyle(libraryVersion: tested) == .block) }
    for other in ["0.9.74", "0.9.76", "0.9.75-1", "1.0.2", "unknown", ""] {
      #expect(HeadStyle(libraryVersion: other) == .fields)
    }
    #expect(HeadStyle.libraryVersion.wholeMatch(of: /\d+\.\d+\.\d+.*/) != nil)
  }

  @Test func `HEAD equals GET without the body and keeps the connection`() async throws {
    let provider = TestProvider()
    provider.keep(makeVariant(try makeRequest().key))
    try await withClient(provider) { client in
      let get = try client.get(imageTarget)
      let head = try client.head(imageTarget)
      let again = try client.get(imageTarget)
      #expect(head.status == 200)
      #expect(head.body.isEmpty)
      #expect(head.headers.map(\.name) == get.headers.map(\.name))
      #expect(head["Content-Length"] == "18000")
      #expect(again.body.count == 18_000)
    }
  }

  @Test func `every pipelined response has its own request id`()
    async throws
  {
    let provider = TestProvider()
    provider.keep(makeVariant(try makeRequest().key, body: [1, 2, 3]))
    try await withServer(provider) { server in
      let port = server.port
      let ids = try await withThrowingTaskGroup(of: [String].self) { group in
        for _ in 0..<8 {
          group.addTask {
            let client = try HTTPClient(port: port)
            try client.send(
              String(repeating: HTTPClient.text("GET", target: imageTarget), count: 50))
            return try (0..<50).map { _ in
              let answer = try client.readAnswer()
              #expect(answer.status == 200 && answer.body == [1, 2, 3])
              return answer["X-Request-ID"] ?? ""
            }
          }
        }
        return try await group.reduce(into: []) { $0 += $1 }
      }
      #expect(ids.count == 400)
      #expect(Set(ids).count == 400)
      #expect(ids.allSatisfy { $0.wholeMatch(of: /[0-9a-f]{16}/) != nil })
    }
  }

  @Test(arguments: [
    ("If-None-Match", "\"0123abcd\"", 304), ("If-None-Match", "W/\"0123abcd\"", 304),
    ("If-None-Match", "\"x,y\", W/\"z\" ,\"0123abcd\"", 304), ("If-None-Match", "*", 304),
    ("If-None-Match", "\"other\", *", 200), ("If-None-Match", "*, \"other\"", 200),
    ("If-None-Match", "\"other\"", 200), ("If-None-Match", "0123abcd", 200),
    ("If-Modified-Since", "Sun, 06 Nov 1994 08:49:37 GMT", 304),
    ("If-Modified-Since", "Sunday, 06-Nov-94 08:49:38 GMT", 304),
    ("If-Modified-Since", "Sun Nov  6 08:49:37 1994", 304),
    ("If-Modified-Since", "Sun, 06 Nov 1994 08:49:36 GMT", 200),
    ("If-Modified-Since", "yesterday", 200),
    // The tag takes precedence.
    ("If-None-Match", "\"other\"\r\nIf-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT", 200),
  ])
  func `a conditional request with a matching validator is answered 304`(
    name: String, value: String, status: Int
  )
    async throws
  {
    let provider = TestProvider()
    provider.keep(makeVariant(try makeRequest().key))
    try await withClient(provider) { client in
      try client.send("GET \(imageTarget) HTTP/1.1\r\nHost: t\r\n\(name): \(value)\r\n\r\n")
      let answer = try client.readAnswer()
      #expect(answer.status == status)
      #expect(answer.body.count == (status == 200 ? 18_000 : 0))
      #expect(answer["ETag"] == "\"0123abcd\"")
      #expect(answer["Cache-Control"] == "public, max-age=3600")
      // No body follows.
      #expect(try client.get("/stats").status == 200)
    }
  }

  @Test func `an age that grows by a digit still fits the prepared head`() async throws {
    let provider = TestProvider()
    let info = makeInfo(receivedAgo: 9)
    provider.keep(makeVariant(try makeRequest().key, info: info))
    try await withClient(provider, configure: { $0.workers = 1 }) { client in
      var ages: [Int] = []
      // From the ninth second to the tenth the number grows by a digit.
      try await eventually("the number grows") {
        guard let age = try? client.get(imageTarget)["Age"].flatMap({ Int($0) }) else {
          return false
        }
        ages.append(age)
        return age >= 10
      }
      #expect(ages == ages.sorted())
    }
  }

  @Test func `two servers can serve one variant`() async throws {
    let provider = TestProvider()
    provider.keep(makeVariant(try makeRequest().key))
    try await withServer(provider) { first in
      try await withServer(provider) {
        $0.corsOrigins = ["https://a.example"]
      } body: { second in
        let one = try HTTPClient(port: first.port).get(imageTarget)
        let two = try HTTPClient(port: second.port).get(imageTarget)
        #expect(one["Access-Control-Allow-Origin"] == "*")
        #expect(two["Access-Control-Allow-Origin"] == "https://a.example")
        #expect(one.body == two.body)
      }
    }
  }

  @Test func `the figures count the sent responses`() async throws {
    let provider = TestProvider()
    provider.keep(makeVariant(try makeRequest().key))
    try await withServer(provider) { server in
      let client = try HTTPClient(port: server.port)
      for _ in 0..<5 { _ = try client.get(imageTarget) }
      _ = try client.head(imageTarget)
      _ = try client.get(imageTarget, headers: ["If-None-Match": "*"])
      _ = try client.get("/nothing")
      try await eventually { server.figures.active == 0 && server.figures.total == 8 }
      let figures = server.figures
      #expect(figures.byStatus == ["200": 6, "304": 1, "404": 1])
      #expect(figures.byOrigin["memory"] == 7)
      #expect(figures.hitRatio == 1)
      #expect(figures.bytesSent > 90_000 && figures.bytesSent < 91_000)
      #expect(figures.connections == 1)
      #expect(figures.hitLatency.count == 7)
      client.close()
      try await eventually { server.figures.connections == 0 }
    }
  }
}
