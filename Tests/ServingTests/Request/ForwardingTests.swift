// ForwardingTests: tests of forwarded request fields and filtered cache keys.

@testable import Core
import TestSupport
import Testing

@testable import Serving

@Suite(.onOwnThreads) struct ForwardingTests {
  private let provider = TestProvider.making()
  private var last: ImageRequest? { provider.requests.withLock { $0.last } }

  private func filter(_ names: String...) throws -> CacheKeyFilter {
    CacheKeyFilter(rules: [
      HostRule(
        host: try #require(HostPattern("example.org")),
        parameters: .drop(try [#require(ParameterPattern("t"))]), forwardedHeaders: names)
    ])
  }

  @Test func `the key uses the filtered URL, and the load uses the requested one`() async throws {
    let filter = try filter()
    let target = imageTarget + "%3Ft%3D1%26id%3D2"
    try await withClient(provider, configure: { $0.keyFilter = filter }) { client in
      let answer = try client.get(target)
      #expect(answer.status == 200)
      #expect(answer["Vary"] == "Accept")
      #expect(answer["Cache-Control"] == "public, max-age=3600")
    }
    let request = try #require(last)
    #expect(request.source.text == imageURL + "?t=1&id=2")
    #expect(request.key.text == imageURL + "?id=2 ")
    #expect(request.forwarded.isEmpty)
  }

  @Test func `two URLs with one key share a memory hit`() async throws {
    let provider = TestProvider()
    provider.keep(makeVariant(try makeRequest(imageURL + "?id=2").key))
    let filter = try filter()
    try await withClient(provider, configure: { $0.keyFilter = filter }) { client in
      for number in 1...2 {
        let answer = try client.get(imageTarget + "%3Ft%3D\(number)%26id%3D2")
        #expect(answer["Cache-Status"] == "pictor; hit; detail=memory")
      }
    }
  }

  @Test func `without a rule no client header is forwarded`() async throws {
    try await withClient(provider) { client in
      let answer = try client.get(
        imageTarget, headers: ["Authorization": "Bearer a", "Cookie": "b=c", "X-Team": "red"])
      #expect(answer["Vary"] == "Accept")
      #expect(answer["Cache-Control"] == "public, max-age=3600")
    }
    let request = try #require(last)
    #expect(request.forwarded.isEmpty)
    #expect(request.key == (try makeRequest().key))
  }

  @Test func `forwarded headers are loaded with, and the key contains only their digest`()
    async throws
  {
    let filter = try filter("X-Team", "Cookie")
    try await withClient(provider, configure: { $0.keyFilter = filter }) { client in
      let answer = try client.get(
        imageTarget, headers: ["x-team": "red", "Cookie": "s3cret=1", "X-Other": "no"])
      #expect(answer["Vary"] == "X-Team, Cookie, Accept")
      #expect(answer["Cache-Control"] == "private, max-age=3600")
    }
    let request = try #require(last)
    #expect(
      Set(request.forwarded)
        == Set(
          [HeaderField("X-Team", value: "red"), HeaderField("Cookie", value: "s3cret=1")]
            .compactMap(\.self))
    )
    #expect(request.key.url == imageURL)
    let digest = try Regex("#[0-9a-f]{32} ")
    #expect(request.key.text.dropFirst(imageURL.count).wholeMatch(of: digest) != nil)
    #expect(request.source.text == imageURL)
  }

  @Test func `forwarded headers that are not credentials leave the response public`() async throws {
    let filter = try filter("X-Team")
    try await withClient(provider, configure: { $0.keyFilter = filter }) { client in
      let answer = try client.get(imageTarget)
      #expect(answer["Vary"] == "X-Team, Accept")
      #expect(answer["Cache-Control"] == "public, max-age=3600")
    }
  }

  @Test func `each forwarded value has its own key`() async throws {
    let filter = try filter("X-Team", "X-Other")
    try await withClient(provider, configure: { $0.keyFilter = filter }) { client in
      let requests: [KeyValuePairs<String, String>] = [
        ["X-Team": "red"], ["X-Team": "blue"], ["X-Other": "red"], [:],
        ["X-Team": "red", "X-Other": "red"], ["X-Team": "red"],
      ]
      for headers in requests { _ = try client.get(imageTarget, headers: headers) }
    }
    let keys = provider.requests.withLock { $0.map(\.key) }
    #expect(Set(keys).count == 5)
    #expect(keys[0] == keys[5])
    #expect(keys[3] == (try makeRequest().key))
  }

  @Test func `a hit is served only for the same forwarded headers`() async throws {
    let provider = TestProvider()
    let field = try #require(HeaderField("X-Team", value: "red"))
    let red = try makeRequest().forwarding([field], variation: Forwarding.digest(of: [field]))
    provider.keep(makeVariant(red.key, body: Array("red".utf8)))
    provider.keep(makeVariant(try makeRequest().key, body: Array("plain".utf8)))
    let filter = try filter("X-Team")
    try await withClient(provider, configure: { $0.keyFilter = filter }) { client in
      for _ in 0..<2 {
        let red = try client.get(imageTarget, headers: ["X-Team": "red"])
        #expect(red.text == "red")
        #expect(red["Cache-Status"] == "pictor; hit; detail=memory")
        #expect(red["Vary"] == "X-Team, Accept")
        let plain = try client.get(imageTarget)
        #expect(plain.text == "plain")
        #expect(plain["Cache-Status"] == "pictor; hit; detail=memory")
        #expect(plain["Vary"] == "X-Team, Accept")
        #expect(try client.get(imageTarget, headers: ["X-Team": "blue"]).status == 404)
      }
    }
    #expect(provider.asked.value == 2)
  }

  @Test func `repeated header lines are joined, and cookies with semicolons`() async throws {
    let filter = try filter("X-Team", "Cookie")
    try await withClient(provider, configure: { $0.keyFilter = filter }) { client in
      try client.send(
        "GET \(imageTarget) HTTP/1.1\r\nHost: h\r\nX-Team: a\r\nCookie: b=1\r\nX-TEAM: c\r\n"
          + "Cookie: d=2\r\n\r\n")
      _ = try client.readAnswer()
    }
    #expect(last?.forwarded.map(\.value) == ["a, c", "b=1; d=2"])
  }

  /// Values of `Cookie` that browsers and programs send, valid or not.
  static let quotedCookies = [
    "a=\"", "a=\"b", "a=\"\"", "a=b\"", "\"", "\"=", "=\"", "a=\"; b=c", "a=\"b;c\"; d=\"",
    "a=\"\"\"", "a=\"b\"; c=\"d", "a=\",\"", "a", "=", ";", "a=b; ;c", "a=\\\"b",
  ]

  @Test(arguments: quotedCookies)
  func `a request with any quotation marks in its cookies is answered, and they are forwarded`(
    cookie: String
  ) async throws {
    let filter = try filter("Cookie")
    try await withServer(provider, configure: { $0.keyFilter = filter }) { server in
      let text = "GET \(imageTarget) HTTP/1.1\r\nHost: h\r\nCookie: \(cookie)\r\nX: \"\r\n\r\n"
      // In one piece, twice in one piece, and byte by byte.
      let client = try HTTPClient(port: server.port)
      try client.send(text)
      #expect(try client.readAnswer().status == 200)
      try client.send(text + text)
      for _ in 0..<2 { #expect(try client.readAnswer().status == 200) }
      for byte in text.utf8 { try client.send(String(UnicodeScalar(byte))) }
      #expect(try client.readAnswer().status == 200)
    }
    #expect(last?.forwarded.map(\.value) == [cookie])
  }

  @Test func `a remembered failure with credentials is private`() async throws {
    let provider = TestProvider { _ throws(ImageError) in
      throw .remembered(.sourceNotFound(status: 404), seconds: 60, isRepeated: true)
    }
    let filter = try filter("Authorization")
    try await withClient(provider, configure: { $0.keyFilter = filter }) { client in
      let answer = try client.get(imageTarget)
      #expect(answer.status == 404)
      #expect(answer["Cache-Control"] == "private, max-age=60")
      #expect(answer["Vary"] == "Authorization, Accept")
    }
  }

  @Test func `a digest depends on names and values, not on their order`() throws {
    func digest(_ fields: (String, String)...) throws -> String {
      Forwarding.digest(of: try fields.map { try #require(HeaderField($0, value: $1)) })
    }
    #expect(try digest(("A", "1"), ("B", "2")) == digest(("b", "2"), ("a", "1")))
    #expect(try digest(("A", "1")) != digest(("A", "2")))
    #expect(try digest(("A", "1")) != digest(("B", "1")))
    #expect(try digest(("A", "1"), ("B", "2")) != digest(("A", "2"), ("B", "1")))
    // SHA-256 of "a:1\n", as computed by sha256sum.
    #expect(try digest(("A", "1")) == "cc00afe311e4319f99a6b216147456ac")
  }

  @Test func `a prefetch list forwards no headers and uses filtered keys`() throws {
    var configuration = ServerConfiguration()
    configuration.keyFilter = try filter("Cookie")
    let lines = try PrefetchRequestParser.parse(
      Array("\(imageURL)?t=1\n".utf8), presets: [],
      rules: RequestRules(configuration))
    let request = try #require(lines.first).request.get()
    #expect(request.key.source.text == imageURL)
    #expect(request.source.text == imageURL + "?t=1")
    #expect(request.forwarded.isEmpty)
  }

  @Test func `a failed URL is removed by any URL of its key`() async throws {
    let services = TestServices()
    let filter = try filter()
    services.failed.withLock {
      $0 = [FailedURL(url: imageURL, transform: nil, code: "x", status: 404, seconds: 1)]
    }
    try await withClient(services: services) {
      $0.keyFilter = filter
      $0.operatorTokens = ["0123456789abcdef"]
    } body: { client in
      try client.send(
        "DELETE /admin/failed?url=https://example.org/a/photo.png%3Ft=5 HTTP/1.1\r\nHost: h\r\n"
          + "Authorization: Bearer 0123456789abcdef\r\n\r\n")
      #expect(try client.readAnswer().text.contains("\"removed\" : 1"))
    }
  }
}
