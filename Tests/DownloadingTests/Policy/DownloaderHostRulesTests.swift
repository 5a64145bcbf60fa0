// DownloaderHostRulesTests: tests of host rules: fields, redirects and cookies.

@testable import Core
import Downloading
import TestSupport
import Testing

@Suite(.onOwnThreads) struct DownloaderHostRulesTests {
  private let origin: Origin
  private let bytes: [UInt8] = Array("image".utf8)

  init() throws {
    origin = try Origin()
    origin.serve("/a", bytes: bytes)
  }

  private func rule(
    _ host: String, change: (inout HostRule) throws -> Void
  ) throws -> HostRule {
    var rule = HostRule(host: try #require(HostPattern(host)))
    rule.credentialOrigins = [try credentials("http:\(origin.port)")]
    try change(&rule)
    return rule
  }

  private func credentials(_ text: String) throws -> HostRule.CredentialOrigin {
    try #require(HostRule.CredentialOrigin(text))
  }

  @Test func `other rules apply to the next load, and one that stays keeps its connection`()
    async throws
  {
    var configuration = DownloaderConfiguration()
    configuration.allowedNetworks = [try #require(CIDR("127.0.0.0/8"))]
    configuration.retries = 0
    let downloader = try makeDownloader()
    for (value, connections) in [("one", 1), ("one", 1), ("two", 2)] {
      configuration.hostRules = [
        try rule("127.0.0.1") { $0.headers = [try field("X-Key", value: value)] }
      ]
      downloader.apply(configuration)
      _ = try await downloader.load(origin.url("/a"))
      #expect(origin.received(at: "/a").last?.headers["x-key"] == value)
      #expect(origin.connections == connections)
    }
  }

  private func field(_ name: String, value: String) throws -> HeaderField {
    try #require(HeaderField(name, value: value))
  }

  private func headers(of origin: Origin, at path: String = "/a") throws -> [String: String] {
    try #require(origin.received(at: path).last).headers
  }

  /// The same server under another name.
  private func byName(_ origin: Origin, path: String) -> String {
    "http://localhost:\(origin.port)\(path)"
  }

  private func request(_ url: String, forwarding forwarded: [HeaderField]) throws -> LoadRequest {
    LoadRequest(url: try SourceURL(parsing: url), forwarded: forwarded)
  }

  // MARK: Fields

  @Test func `without a rule, the default headers are sent and no client header is forwarded`()
    async throws
  {
    let downloader = try makeDownloader { $0.userAgent = "Pictor/9" }
    let secret = try field("Authorization", value: "Bearer client")
    _ = try await downloader.load(try request(origin.url("/a"), forwarding: [secret]))
    let headers = try headers(of: origin)
    #expect(headers["accept"] == "image/avif,image/webp,image/*;q=0.8")
    #expect(headers["user-agent"] == "Pictor/9")
    #expect(headers["accept-encoding"] == "identity")
    #expect(Set(headers.keys) == ["host", "accept", "user-agent", "accept-encoding"])
  }

  @Test func `a rule adds, replaces and drops headers`() async throws {
    let rules = [
      try rule("127.0.0.1") {
        $0.headers = [
          try field("Referer", value: "https://example.com/"),
          try field("ACCEPT", value: "image/png"),
        ]
        $0.droppedHeaders = ["user-agent"]
      },
      try rule("*") { $0.droppedHeaders = ["Accept"] },
    ]
    let downloader = try makeDownloader { $0.hostRules = rules }
    _ = try await downloader.load(origin.url("/a"))
    let first = try headers(of: origin)
    #expect(first["referer"] == "https://example.com/" && first["accept"] == "image/png")
    #expect(first["user-agent"] == nil)
    _ = try await downloader.load(byName(origin, path: "/a"))
    let second = try headers(of: origin)
    #expect(second["accept"] == nil && second["referer"] == nil)
    #expect(second["user-agent"] == "Pictor")
  }

  @Test func `only the headers that a rule names are forwarded, replacing defaults`() async throws {
    let rules = [try rule("*") { $0.forwardedHeaders = ["accept-language", "User-Agent"] }]
    let downloader = try makeDownloader { $0.hostRules = rules }
    let fields = [
      try field("Accept-Language", value: "de"), try field("user-agent", value: "Client/1"),
      try field("Cookie", value: "a=b"),
    ]
    _ = try await downloader.load(try request(origin.url("/a"), forwarding: fields))
    let headers = try headers(of: origin)
    #expect(headers["accept-language"] == "de" && headers["user-agent"] == "Client/1")
    #expect(headers["cookie"] == nil)
  }

  @Test(arguments: [
    ([], false), (["https"], false), (["http"], false), (["https:PORT"], false),
    (["http:PORT"], true), (["https", "http:PORT"], true), (["http:1"], false),
  ])
  func `a client that names a scheme or port cannot make the server send its credentials there`(
    texts: [String], areSent: Bool
  ) async throws {
    // Given: an origin without TLS at a port that the client chooses
    let origins = try texts.map {
      try credentials($0.replacing("PORT", with: "\(origin.port)"))
    }
    var rule = HostRule(host: try #require(HostPattern("127.0.0.1")))
    rule.secretHeaders = [
      try #require(HeaderField(bearer: "s3cret")), try field("X-Key", value: "s3cret"),
    ]
    rule.headers = [try field("X-Open", value: "1")]
    if !texts.isEmpty { rule.credentialOrigins = origins }
    let downloader = try makeDownloader { [rule] in $0.hostRules = [rule] }
    origin.route("/from", to: .redirect(to: "/a"))
    // When
    for path in ["/a", "/from"] { _ = try await downloader.load(origin.url(path)) }
    // Then
    for request in origin.received(at: "/a") + origin.received(at: "/from") {
      #expect((request.headers["authorization"] == "Bearer s3cret") == areSent)
      #expect((request.headers["x-key"] == "s3cret") == areSent)
      #expect(request.headers["x-open"] == "1")
    }
    #expect(origin.totalRequests == 3)
  }

  // MARK: Redirects

  @Test func `a redirect on the same origin keeps all headers`() async throws {
    origin.route("/from", to: .redirect(to: "/a"))
    let rules = [
      try rule("127.0.0.1") {
        $0.secretHeaders = [try #require(HeaderField(bearer: "t"))]
        $0.forwardedHeaders = ["X-Client"]
      }
    ]
    let downloader = try makeDownloader { $0.hostRules = rules }
    _ = try await downloader.load(
      try request(origin.url("/from"), forwarding: [try field("X-Client", value: "1")]))
    let headers = try headers(of: origin)
    #expect(headers["authorization"] == "Bearer t" && headers["x-client"] == "1")
  }

  @Test func `a redirect to another port gets no secrets, although its rule matches`()
    async throws
  {
    let other = try Origin()
    other.serve("/b", bytes: bytes)
    origin.route("/from", to: .redirect(to: other.url("/b")))
    let rules = [
      try rule("*") {
        $0.headers = [try field("X-Open", value: "1")]
        $0.secretHeaders = [try #require(HeaderField(bearer: "t"))]
        // Even if the rule names the other port, a redirect does not lead them there.
        $0.credentialOrigins.append(try credentials("http:\(other.port)"))
        $0.forwardedHeaders = ["X-Client"]
      }
    ]
    let downloader = try makeDownloader { $0.hostRules = rules }
    _ = try await downloader.load(
      try request(origin.url("/from"), forwarding: [try field("X-Client", value: "1")]))
    let first = try headers(of: origin, at: "/from")
    #expect(first["authorization"] == "Bearer t" && first["x-client"] == "1")
    let headers = try headers(of: other, at: "/b")
    #expect(headers["authorization"] == nil && headers["x-client"] == nil)
    #expect(headers["x-open"] == "1")
  }

  @Test
  func
    `a redirect to another host uses that host's rule, and a redirect back uses the first one again`()
    async throws
  {
    let other = try Origin()
    origin.route("/from", to: .redirect(to: byName(other, path: "/middle")))
    other.route("/middle", to: .redirect(to: origin.url("/a")))
    let rules = [
      try rule("127.0.0.1") {
        $0.secretHeaders = [try #require(HeaderField(bearer: "first"))]
        $0.forwardedHeaders = ["X-Client"]
      },
      try rule("localhost") {
        $0.secretHeaders = [try #require(HeaderField(bearer: "second"))]
        $0.credentialOrigins = [try credentials("http:\(other.port)")]
        $0.forwardedHeaders = ["X-Client"]
      },
    ]
    let downloader = try makeDownloader { $0.hostRules = rules }
    _ = try await downloader.load(
      try request(origin.url("/from"), forwarding: [try field("X-Client", value: "1")]))
    let middle = try headers(of: other, at: "/middle")
    #expect(middle["authorization"] == "Bearer second" && middle["x-client"] == nil)
    let last = try headers(of: origin)
    #expect(last["authorization"] == "Bearer first" && last["x-client"] == "1")
  }

  @Test func `a redirect to a host without a rule gets no rule headers`() async throws {
    origin.route("/from", to: .redirect(to: byName(origin, path: "/a")))
    let rules = [
      try rule("127.0.0.1") {
        $0.headers = [try field("X-Open", value: "1")]
        $0.secretHeaders = [try #require(HeaderField(bearer: "t"))]
      }
    ]
    let downloader = try makeDownloader { $0.hostRules = rules }
    _ = try await downloader.load(origin.url("/from"))
    let headers = try headers(of: origin)
    #expect(headers["authorization"] == nil && headers["x-open"] == nil)
  }

  @Test func `a retry sends the same headers as the first attempt`() async throws {
    origin.route("/third") { request in
      request.number == 1 ? .closeBeforeHead : .ok(Array("x".utf8))
    }
    let rules = [try rule("*") { $0.secretHeaders = [try #require(HeaderField(bearer: "t"))] }]
    let downloader = try makeDownloader {
      $0.hostRules = rules
      $0.retries = 1
      $0.retryDelay = .milliseconds(1)
    }
    _ = try await downloader.load(origin.url("/third"))
    let tokens = origin.received(at: "/third").map { $0.headers["authorization"] }
    #expect(tokens == ["Bearer t", "Bearer t"])
  }

  // MARK: Cookies

  @Test func `without a cookie jar, cookies are neither stored nor sent`() async throws {
    origin.serve("/set", bytes: bytes, headers: ["Set-Cookie: session=1"])
    let downloader = try makeDownloader()
    _ = try await downloader.load(origin.url("/set"))
    _ = try await downloader.load(origin.url("/a"))
    #expect(try headers(of: origin)["cookie"] == nil)
  }

  @Test func `a cookie jar sends stored cookies in later loads and redirects`() async throws {
    origin.route(
      "/set", to: .status(302, headers: ["Location: /a", "Set-Cookie: session=1; Path=/"]))
    let rules = [try rule("127.0.0.1") { $0.keepsCookies = true }]
    let downloader = try makeDownloader { $0.hostRules = rules }
    _ = try await downloader.load(origin.url("/set"))
    #expect(try headers(of: origin)["cookie"] == "session=1")
    _ = try await downloader.load(origin.url("/a"))
    #expect(try headers(of: origin)["cookie"] == "session=1")
  }

  @Test func `a cookie jar belongs to one rule and is not used for other hosts`() async throws {
    origin.serve("/set", bytes: bytes, headers: ["Set-Cookie: session=1; Path=/"])
    origin.route("/away", to: .redirect(to: byName(origin, path: "/a")))
    origin.route("/back", to: .redirect(to: origin.url("/a")))
    let rules = [
      try rule("127.0.0.1") { $0.keepsCookies = true },
      try rule("localhost") { $0.keepsCookies = false },
    ]
    let downloader = try makeDownloader { $0.hostRules = rules }
    _ = try await downloader.load(origin.url("/set"))
    _ = try await downloader.load(origin.url("/away"))
    #expect(try headers(of: origin, at: "/away")["cookie"] == "session=1")
    #expect(try headers(of: origin)["cookie"] == nil)
    // Cookies of a host without a jar are dropped, even if the load is redirected to one with a
    // jar.
    origin.route(
      "/back",
      to: .status(302, headers: ["Location: \(origin.url("/a"))", "Set-Cookie: x=2; Path=/"]))
    _ = try await downloader.load(byName(origin, path: "/back"))
    #expect(try headers(of: origin)["cookie"] == "session=1")
    // Downloaders do not share cookie jars.
    _ = try await makeDownloader { $0.hostRules = rules }.load(origin.url("/a"))
    #expect(try headers(of: origin)["cookie"] == nil)
  }

  @Test func `a full cookie jar is emptied`() async throws {
    origin.route("/set") { request in
      .ok(
        Array("x".utf8),
        headers: (0..<40).map { "Set-Cookie: c\(request.number)-\($0)=1; Path=/set" })
    }
    let rules = [try rule("*") { $0.keepsCookies = true }]
    let downloader = try makeDownloader { $0.hostRules = rules }
    for _ in 0..<64 { _ = try await downloader.load(origin.url("/set")) }
    _ = try await downloader.load(origin.url("/set"))
    let sent = origin.received(at: "/set").map { $0.headers["cookie"]?.isEmpty == false }
    #expect(sent == [false] + Array(repeating: true, count: 63) + [false])
  }
}
