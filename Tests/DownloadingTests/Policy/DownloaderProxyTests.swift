// DownloaderProxyTests: tests of proxies and of invalid certificates with host rules.

@testable import Core
import Downloading
import TestSupport
import Testing

@Suite(.onOwnThreads) struct DownloaderProxyTests {
  private let proxy: Origin
  private let bytes: [UInt8] = Array("image".utf8)

  init() throws { proxy = try Origin() }

  private func rule(_ host: String, proxy way: HostRule.Proxy) throws -> HostRule {
    var rule = HostRule(host: try #require(HostPattern(host)))
    rule.proxy = way
    return rule
  }

  private var url: String { "http://127.0.0.1:\(proxy.port)" }

  @Test func `a proxy receives the absolute URL and resolves the name`() async throws {
    // A proxy request has its target in absolute form, which this origin treats as a path.
    proxy.serve("http://images.example/a.jpg", bytes: bytes)
    let downloader = try makeDownloader { $0.proxy = url }
    let load = try await downloader.load("http://images.example/a.jpg")
    #expect(load.file.bytes == bytes)
    let headers = try #require(proxy.received(at: "http://images.example/a.jpg").first).headers
    #expect(headers["host"] == "images.example")
    #expect(headers["proxy-authorization"] == nil)
  }

  @Test func `the proxy's own address needs no permission`() async throws {
    proxy.serve("http://images.example/a.jpg", bytes: bytes)
    let downloader = try makeDownloader {
      $0.proxy = url
      $0.allowedNetworks = []
    }
    #expect(try await downloader.load("http://images.example/a.jpg").file.bytes == bytes)
  }

  @Test(arguments: [
    "127.0.0.1", "127.1", "2130706433", "10.0.0.1", "[::1]", "[fe80::1%25eth0]", "localhost",
    "a.localhost", "LOCALHOST.", "169.254.169.254",
  ])
  func `a forbidden address is not requested through a proxy`(
    host: String
  ) async throws {
    let downloader = try makeDownloader {
      $0.proxy = url
      $0.allowedNetworks = []
    }
    let failure = await downloader.failure(of: "http://\(host)/a.jpg")
    #expect(["forbidden_source", "invalid_url"].contains(failure?.code), "\(host)")
    #expect(proxy.totalRequests == 0)
  }

  @Test func `a redirect to a forbidden address is not followed through a proxy`() async throws {
    proxy.route("http://images.example/a.jpg", to: .redirect(to: "http://10.0.0.1/a.jpg"))
    let downloader = try makeDownloader {
      $0.proxy = url
      $0.allowedNetworks = []
    }
    let failure = await downloader.failure(of: "http://images.example/a.jpg")
    #expect(failure?.code == "forbidden_source")
    #expect(proxy.totalRequests == 1)
  }

  @Test func `a rule can name its own proxy or disable the proxy`() async throws {
    let origin = try Origin()
    origin.serve("/a", bytes: bytes)
    proxy.serve("http://one.example/a", bytes: bytes)
    let rules = [try rule("one.example", proxy: .url(url)), try rule("127.0.0.1", proxy: .direct)]
    let downloader = try makeDownloader {
      $0.proxy = "http://127.0.0.1:\(origin.port)"
      $0.hostRules = rules
    }
    _ = try await downloader.load("http://one.example/a")
    _ = try await downloader.load(origin.url("/a"))
    #expect(proxy.totalRequests == 1)
    #expect(origin.received(at: "/a").map(\.target) == ["/a"])
  }

  @Test func `each redirect uses its own host's proxy, and direct hops are checked`()
    async throws
  {
    let origin = try Origin()
    origin.serve("/a", bytes: bytes)
    proxy.route("http://one.example/a", to: .redirect(to: origin.url("/a")))
    let rules = [try rule("one.example", proxy: .url(url))]
    let open = try makeDownloader { $0.hostRules = rules }
    #expect(try await open.load("http://one.example/a").file.bytes == bytes)
    let closed = try makeDownloader {
      $0.hostRules = rules
      $0.allowedNetworks = []
    }
    #expect(await closed.failure(of: "http://one.example/a")?.code == "forbidden_source")
    #expect(origin.totalRequests == 1)
  }

  @Test func `the user and password of a proxy URL are sent to the proxy only`() async throws {
    proxy.serve("http://images.example/a", bytes: bytes)
    let secret = try #require(HeaderField(bearer: "origin's"))
    var rule = HostRule(host: try #require(HostPattern("*")))
    rule.secretHeaders = [secret]
    rule.credentialOrigins = [try #require(HostRule.CredentialOrigin("http"))]
    let downloader = try makeDownloader { [rule] in
      $0.proxy = "http://me:open%20sesame@127.0.0.1:\(proxy.port)"
      $0.hostRules = [rule]
    }
    _ = try await downloader.load("http://images.example/a")
    let headers = try #require(proxy.received(at: "http://images.example/a").first).headers
    #expect(headers["proxy-authorization"] == "Basic bWU6b3BlbiBzZXNhbWU=")
    #expect(headers["authorization"] == "Bearer origin's")
  }

  @Test func `a CONNECT request contains no headers for the origin`() async throws {
    let secret = try #require(HeaderField(bearer: "t"))
    var rule = HostRule(host: try #require(HostPattern("*")))
    rule.secretHeaders = [secret]
    let downloader = try makeDownloader {
      $0.proxy = url
      $0.hostRules = [rule]
    }
    proxy.route("images.example:443", to: .status(403, body: Array("no".utf8)))
    let failure = await downloader.failure(of: "https://images.example/a")
    #expect(failure?.code == "source_unreachable", "\(String(describing: failure))")
    let asked = try #require(proxy.received(at: "images.example:443").first)
    #expect(asked.method == "CONNECT")
    #expect(asked.headers["authorization"] == nil)
  }

  @Test func `two rules with one proxy share no connection, and the loads of one rule do`()
    async throws
  {
    // Given: a proxy that knows its users by their connections, and three rules that use it
    for host in ["one", "two", "three"] {
      for path in ["a", "b"] { proxy.serve("http://\(host).example/\(path)", bytes: bytes) }
    }
    let address = "127.0.0.1:\(proxy.port)"
    let rules = [
      try rule("one.example", proxy: .url("http://alice:1@\(address)")),
      try rule("two.example", proxy: .url("http://bob:2@\(address)")),
    ]
    let downloader = try makeDownloader {
      $0.proxy = "http://\(address)"
      $0.hostRules = rules
    }
    // When
    var connections: [String: Set<Int>] = [:]
    for path in ["a", "b"] {
      for host in ["one", "two", "three"] {
        _ = try await downloader.load("http://\(host).example/\(path)")
        let received = try #require(proxy.received(at: "http://\(host).example/\(path)").last)
        connections[host, default: []].insert(received.connection)
      }
    }
    // Then
    #expect(connections.values.allSatisfy { $0.count == 1 }, "\(connections)")
    #expect(proxy.connections == 3)
  }

  @Test func `an unreachable proxy is reported as source_unreachable`() async throws {
    let closed = try ClosedPort()
    let downloader = try makeDownloader {
      $0.proxy = "http://me:secret@127.0.0.1:\(closed.port)"
    }
    let failure = await downloader.failure(of: "http://images.example/a")
    #expect(failure?.code == "source_unreachable")
    #expect(failure?.logDetail?.contains("secret") == false)
  }
}

@Suite(.onOwnThreads) struct DownloaderCertificateTests {
  private let bytes: [UInt8] = Array("image".utf8)

  private func unverified(_ host: String) throws -> HostRule {
    var rule = HostRule(host: try #require(HostPattern(host)))
    rule.allowsInvalidCertificates = true
    return rule
  }

  @Test func `an untrusted certificate is accepted only from hosts listed for it`()
    async throws
  {
    let nginx = try await Nginx(files: ["a.jpg": bytes])
    let rules = [try unverified("localhost")]
    let downloader = try makeDownloader { $0.hostRules = rules }
    #expect(try await downloader.load(nginx.url("/a.jpg")).file.bytes == bytes)
    // The same server, with an open connection, under a name that is not listed.
    let failure = await downloader.failure(of: nginx.url("/a.jpg", host: "127.0.0.1"))
    #expect(failure?.code == "source_tls", "\(String(describing: failure))")
  }

  @Test func `a redirect from a listed host still verifies the target's certificate`() async throws
  {
    let nginx = try await Nginx(files: ["a.jpg": bytes])
    let origin = try Origin()
    origin.route("/from", to: .redirect(to: nginx.url("/a.jpg")))
    let rules = [try unverified("127.0.0.1")]
    let downloader = try makeDownloader { $0.hostRules = rules }
    #expect(await downloader.failure(of: origin.url("/from"))?.code == "source_tls")
    let byName = [try unverified("localhost")]
    let listed = try makeDownloader { $0.hostRules = byName }
    #expect(try await listed.load(origin.url("/from")).file.bytes == bytes)
  }
}
