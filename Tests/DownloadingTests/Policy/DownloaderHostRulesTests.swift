// DownloaderHostRulesTests: tests of host rules: fields, redirects and cookies.

import Downloading
import Model
import TestSupport
import Testing

@Suite(.onOwnThreads) struct DownloaderHostRulesTests {
  private let origin: Origin
  private let bytes: [UInt8] = Array("image".utf8)

  init() throws {
    origin = try Origin()
    origin.serve("/a", bytes)
  }

  private func rule(
    _ host: String, _ change: (inout HostRule) throws -> Void
  ) throws -> HostRule {
    var rule = HostRule(host: try #require(HostPattern(host)))
    try change(&rule)
    return rule
  }

  private func field(_ name: String, _ value: String) throws -> HeaderField {
    try #require(HeaderField(name, value))
  }

  private func headers(of origin: Origin, at path: String = "/a") throws -> [String: String] {
    try #require(origin.received(at: path).last).headers
  }

  /// The same server under another name.
  private func byName(_ origin: Origin, _ path: String) -> String {
    "http://localhost:\(origin.port)\(path)"
  }

  private func request(_ url: String, _ forwarded: [HeaderField]) throws -> LoadRequest {
    LoadRequest(url: try SourceURL(parsing: url), forwarded: forwarded)
  }

  // MARK: Fields

  @Test func `without a rule there are the defaults, and nothing of a client's`() async throws {
    let downloader = try makeDownloader { $0.userAgent = "Pictor/9" }
    let secret = try field("Authorization", "Bearer client")
    _ = try await downloader.load(try request(origin.url("/a"), [secret]))
    let headers = try headers(of: origin)
    #expect(headers["accept"] == "image/avif,image/webp,image/*;q=0.8")
    #expect(headers["user-agent"] == "Pictor/9")
    #expect(headers["accept-encoding"] == "identity")
    #expect(Set(headers.keys) == ["host", "accept", "user-agent", "accept-encoding"])
  }

  @Test func `a rule adds fields, replaces defaults and drops them`() async throws {
    let rules = [
      try rule("127.0.0.1") {
        $0.headers = [
          try field("Referer", "https://example.com/"), try field("ACCEPT", "image/png"),
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
    _ = try await downloader.load(byName(origin, "/a"))
    let second = try headers(of: origin)
    #expect(second["accept"] == nil && second["referer"] == nil)
    #expect(second["user-agent"] == "Pictor")
  }

  @Test func `a rule's fields go with conditional requests, too`() async throws {
    let rules = [try rule("*") { $0.headers = [try field("X-A", "1")] }]
    let downloader = try makeDownloader { $0.hostRules = rules }
    origin.route("/old", .status(304))
    _ = try await downloader.revalidate(origin.url("/old"), try validators(etag: "\"v1\""))
    let headers = try headers(of: origin, at: "/old")
    #expect(headers["x-a"] == "1" && headers["if-none-match"] == "\"v1\"")
  }

  @Test func `only what the rule names is forwarded, in place of a default`() async throws {
    let rules = [try rule("*") { $0.forwardedHeaders = ["accept-language", "User-Agent"] }]
    let downloader = try makeDownloader { $0.hostRules = rules }
    let fields = [
      try field("Accept-Language", "de"), try field("user-agent", "Client/1"),
      try field("Cookie", "a=b"),
    ]
    _ = try await downloader.load(try request(origin.url("/a"), fields))
    let headers = try headers(of: origin)
    #expect(headers["accept-language"] == "de" && headers["user-agent"] == "Client/1")
    #expect(headers["cookie"] == nil)
  }

  @Test func `credentials are sent to their host alone`() async throws {
    let basic = try #require(HeaderField(user: "me", password: "open sesame"))
    let bearer = try #require(HeaderField(bearer: "t0ken"))
    let rules = [
      try rule("127.0.0.1") { $0.secretHeaders = [basic] },
      try rule("localhost") { $0.secretHeaders = [bearer] },
    ]
    let downloader = try makeDownloader { $0.hostRules = rules }
    _ = try await downloader.load(origin.url("/a"))
    #expect(try headers(of: origin)["authorization"] == "Basic bWU6b3BlbiBzZXNhbWU=")
    _ = try await downloader.load(byName(origin, "/a"))
    #expect(try headers(of: origin)["authorization"] == "Bearer t0ken")
  }

  // MARK: Redirects

  @Test func `behind a redirect on one origin everything stays`() async throws {
    origin.route("/from", .redirect(to: "/a"))
    let rules = [
      try rule("127.0.0.1") {
        $0.secretHeaders = [try #require(HeaderField(bearer: "t"))]
        $0.forwardedHeaders = ["X-Client"]
      }
    ]
    let downloader = try makeDownloader { $0.hostRules = rules }
    _ = try await downloader.load(
      try request(origin.url("/from"), [try field("X-Client", "1")]))
    let headers = try headers(of: origin)
    #expect(headers["authorization"] == "Bearer t" && headers["x-client"] == "1")
  }

  @Test func `at another port there are no secrets of the first, though its rule matches`()
    async throws
  {
    let other = try Origin()
    other.serve("/b", bytes)
    origin.route("/from", .redirect(to: other.url("/b")))
    let rules = [
      try rule("*") {
        $0.headers = [try field("X-Open", "1")]
        $0.secretHeaders = [try #require(HeaderField(bearer: "t"))]
        $0.forwardedHeaders = ["X-Client"]
      }
    ]
    let downloader = try makeDownloader { $0.hostRules = rules }
    _ = try await downloader.load(
      try request(origin.url("/from"), [try field("X-Client", "1")]))
    let first = try headers(of: origin, at: "/from")
    #expect(first["authorization"] == "Bearer t" && first["x-client"] == "1")
    let headers = try headers(of: other, at: "/b")
    #expect(headers["authorization"] == nil && headers["x-client"] == nil)
    #expect(headers["x-open"] == "1")
  }

  @Test func `another host gets its own rule's, and the first one's again on the way back`()
    async throws
  {
    let other = try Origin()
    origin.route("/from", .redirect(to: byName(other, "/middle")))
    other.route("/middle", .redirect(to: origin.url("/a")))
    let rules = [
      try rule("127.0.0.1") {
        $0.secretHeaders = [try #require(HeaderField(bearer: "first"))]
        $0.forwardedHeaders = ["X-Client"]
      },
      try rule("localhost") {
        $0.secretHeaders = [try #require(HeaderField(bearer: "second"))]
        $0.forwardedHeaders = ["X-Client"]
      },
    ]
    let downloader = try makeDownloader { $0.hostRules = rules }
    _ = try await downloader.load(
      try request(origin.url("/from"), [try field("X-Client", "1")]))
    let middle = try headers(of: other, at: "/middle")
    #expect(middle["authorization"] == "Bearer second" && middle["x-client"] == nil)
    let last = try headers(of: origin)
    #expect(last["authorization"] == "Bearer first" && last["x-client"] == "1")
  }

  @Test func `a host without a rule gets nothing`() async throws {
    origin.route("/from", .redirect(to: byName(origin, "/a")))
    let rules = [
      try rule("127.0.0.1") {
        $0.headers = [try field("X-Open", "1")]
        $0.secretHeaders = [try #require(HeaderField(bearer: "t"))]
      }
    ]
    let downloader = try makeDownloader { $0.hostRules = rules }
    _ = try await downloader.load(origin.url("/from"))
    let headers = try headers(of: origin)
    #expect(headers["authorization"] == nil && headers["x-open"] == nil)
  }

  @Test func `a retry is sent what the first try was`() async throws {
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

  @Test func `cookies are neither kept nor sent without a jar`() async throws {
    origin.serve("/set", bytes, headers: ["Set-Cookie: session=1"])
    let downloader = try makeDownloader()
    _ = try await downloader.load(origin.url("/set"))
    _ = try await downloader.load(origin.url("/a"))
    #expect(try headers(of: origin)["cookie"] == nil)
  }

  @Test func `a jar keeps its hosts' cookies for later loads and redirects`() async throws {
    origin.route("/set", .status(302, headers: ["Location: /a", "Set-Cookie: session=1; Path=/"]))
    let rules = [try rule("127.0.0.1") { $0.keepsCookies = true }]
    let downloader = try makeDownloader { $0.hostRules = rules }
    _ = try await downloader.load(origin.url("/set"))
    #expect(try headers(of: origin)["cookie"] == "session=1")
    _ = try await downloader.load(origin.url("/a"))
    #expect(try headers(of: origin)["cookie"] == "session=1")
  }

  @Test func `a jar is one rule's, and no other host's`() async throws {
    origin.serve("/set", bytes, headers: ["Set-Cookie: session=1; Path=/"])
    origin.route("/away", .redirect(to: byName(origin, "/a")))
    origin.route("/back", .redirect(to: origin.url("/a")))
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
      "/back", .status(302, headers: ["Location: \(origin.url("/a"))", "Set-Cookie: x=2; Path=/"]))
    _ = try await downloader.load(byName(origin, "/back"))
    #expect(try headers(of: origin)["cookie"] == "session=1")
    // Nor is one jar another downloader's.
    _ = try await makeDownloader { $0.hostRules = rules }.load(origin.url("/a"))
    #expect(try headers(of: origin)["cookie"] == nil)
  }

  @Test func `a jar that fills up is emptied`() async throws {
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
