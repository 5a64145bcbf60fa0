// DownloaderSafetyTests: tests of the sources and addresses that Downloader refuses.

import Core
import Downloading
import TestSupport
import Testing

@Suite(.onOwnThreads) struct DownloaderSafetyTests {
  private let body: [UInt8] = [1, 2, 3]

  @Test(arguments: [
    "127.0.0.1", "127.1", "127.0.1", "2130706433", "0x7f000001", "0x7f.0.0.1", "0177.0.0.1",
    "017700000001", "127.0.0.1.", "127.000.000.001", "%31%32%37.0.0.1", "localhost", "LOCALHOST",
    "127.1.", "2130706433.", "0x7f000001.", "%31%32%37.0.0.1.", "10.0.0.1.", "169.254.169.254.",
    "localhost.", "LOCALHOST.", "a.localhost", "a.localhost.", "0", "0.0.0.0", "[::1]", "[::]",
    "[0:0:0:0:0:0:0:1]",
    "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::ffff:0:127.0.0.1]", "[::127.0.0.1]",
    "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "[2001:0:7f00:1::f7f7:f7f7]",
    "[2606:4700::5efe:7f00:1]", "[64:ff9b:1::7f00:1]", "[fe80::1]", "10.0.0.1", "100.64.0.1",
    "169.254.169.254", "[fd00:ec2::254]", "255.255.255.255", "224.0.0.1", "192.168.1.1",
  ])
  func `no spelling of a private address is connected to`(_ host: String) async throws {
    // Given
    let origin = try Origin()
    let other = try Origin(on: "::1")
    origin.serve("/a", bytes: body)
    let downloader = try Downloader(log: .silent)
    for port in [origin.port, other.port] {
      // When
      let failure = await downloader.failure(of: "http://\(host):\(port)/a")
      // Then: refused by its address, or as an invalid host by a parser
      let isRefused =
        switch failure {
        case .forbiddenSource(let reason, let detail, let key):
          reason == "its address is not allowed" && !detail.isEmpty
            && key == "download.allow_networks"
        case .invalidURL: true
        default: false
        }
      #expect(isRefused, "\(host): \(String(describing: failure))")
    }
    #expect(origin.connections == 0 && other.connections == 0)
  }

  @Test(arguments: [
    "127.1", "2130706433", "0x7f000001", "localhost", "[::ffff:127.0.0.1]", "127.0.0.1.",
    "localhost.",
  ])
  func `every spelling of an address works if its network is allowed`(_ host: String) async throws {
    let origin = try Origin()
    origin.serve("/a", bytes: body)
    let url = origin.url("/a", host: host)
    #expect(try await makeDownloader().load(url).file.bytes == body)
  }

  @Test func `a redirect to a private address is refused at connect`() async throws {
    // Given: IPv4 loopback is allowed, IPv6 loopback is not
    let origin = try Origin()
    let hidden = try Origin(on: "::1")
    origin.route("/a", to: .redirect(to: hidden.url("/secret")))
    let downloader = try makeDownloader { $0.allowedNetworks.removeLast() }
    // Then
    let failure = await downloader.failure(of: origin.url("/a"))
    #expect(
      failure
        == .forbiddenSource(
          reason: "its address is not allowed", detail: "::1 (loopback)",
          key: "download.allow_networks"))
    #expect(hidden.connections == 0)
  }

  @Test(arguments: ["http://user:password@127.0.0.1/a", "http://[::1/a"])
  func `a redirect to a URL that cannot be used is refused`(_ location: String) async throws {
    let origin = try Origin()
    origin.route("/a", to: .redirect(to: location))
    let failure = try await makeDownloader().failure(of: origin.url("/a"))
    #expect(failure?.code == "forbidden_source", "\(String(describing: failure))")
    #expect(origin.totalRequests == 1)
  }

  @Test(arguments: [
    ("file:///etc/passwd", "file"), ("dict://127.0.0.1/d:x", "dict"), ("FTP://127.0.0.1/a", "ftp"),
    ("gopher://h:70/_x", "gopher"),
    ("data:image/png;base64,AAAA", "data"), ("javascript:1", "javascript"),
    ("local:///a.jpg", "local"), ("ftp://user:password@127.0.0.1/a", "ftp"),
  ])
  func `the error for a forbidden redirect scheme names it and the allowed schemes`(
    location: String, scheme: String
  ) async throws {
    // Given
    let origin = try Origin()
    origin.route("/a", to: .redirect(to: location))
    // When
    let failure = try #require(await makeDownloader().failure(of: origin.url("/a")))
    // Then
    #expect(failure.status == 403 && failure.code == "forbidden_source")
    #expect(
      failure.message == """
        the source may not be fetched: it redirects to a URL with the scheme '\(scheme)', and only \
        http and https are allowed
        """)
    #expect(failure.logDetail?.contains("password") != true && origin.totalRequests == 1)
  }

  @Test func `only hosts on the allow list are requested, also after redirects`() async throws {
    // Given
    let origin = try Origin()
    let other = try Origin()
    origin.serve("/a", bytes: body)
    origin.route("/moved", to: .redirect(to: other.url("/a", host: "127.1")))
    origin.route("/left", to: .redirect(to: "http://not-there.invalid/a"))
    origin.route("/loc", to: .redirect(to: origin.url("/a", host: "localhost")))
    other.serve("/a", bytes: body)
    let downloader = try makeDownloader {
      $0.hosts.allowed = ["127.0.0.1", "*.example.com"].compactMap { SourcePattern($0) }
    }
    // Then
    #expect(try await downloader.load(origin.url("/a")).file.bytes == body)
    // The pattern matches the normalized host, not its spelling.
    #expect(try await downloader.load(origin.url("/moved")).file.bytes == body)
    let reason = "its host is not on the allow list"
    for (url, host) in [
      (origin.url("/left"), "not-there.invalid"), (origin.url("/loc"), "localhost"),
      ("http://example.com/a", "example.com"), ("http://127.0.0.2/a", "127.0.0.2"),
      ("http://127.0.0.1.evil.example/a", "127.0.0.1.evil.example"),
    ] {
      let failure = await downloader.failure(of: url)
      #expect(
        failure == .forbiddenSource(reason: reason, detail: host, key: "download.allow_hosts"))
    }
    #expect(downloader.figures.failed == ["forbidden_source": 5])
  }

  @Test func `no host on the deny list is requested, also after redirects and in other spellings`()
    async throws
  {
    // Given
    let origin = try Origin()
    origin.serve("/a", bytes: body)
    origin.route("/moved", to: .redirect(to: origin.url("/a", host: "localhost")))
    let downloader = try makeDownloader {
      $0.hosts.allowed = ["127.0.0.1", "localhost"].compactMap { SourcePattern($0) }
      $0.hosts.denied = ["localhost", "*.example.com"].compactMap { SourcePattern($0) }
    }
    // Then
    #expect(try await downloader.load(origin.url("/a")).file.bytes == body)
    for (url, host) in [
      (origin.url("/moved"), "localhost"), (origin.url("/a", host: "LOCALHOST"), "localhost"),
      (origin.url("/a", host: "localhost."), "localhost"),
      (origin.url("/a", host: "loc%61lhost"), "localhost"),
      ("http://images.example.com/a", "images.example.com"),
    ] {
      let failure = await downloader.failure(of: url)
      #expect(
        failure
          == .forbiddenSource(
            reason: "its host is on the deny list", detail: host, key: "download.deny_hosts"),
        "\(url)")
    }
  }

  @Test func `the downloader refuses local sources`() async throws {
    let failure = try await makeDownloader().failure(of: "local:///etc/passwd")
    #expect(failure?.code == "forbidden_source")
  }
}
