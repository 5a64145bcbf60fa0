// DownloaderListsTests: tests of the allow and deny lists with ports and paths, and of the ports.

import Core
import Downloading
import TestSupport
import Testing

@Suite(.onOwnThreads) struct DownloaderListsTests {
  private let origin: Origin
  private let other: Origin
  private let body: [UInt8] = [1, 2, 3]

  init() throws {
    origin = try Origin()
    other = try Origin()
    for path in ["/public/a", "/private/a", "/a"] {
      origin.serve(path, bytes: body)
      other.serve(path, bytes: body)
    }
  }

  private func patterns(_ texts: String...) throws -> [SourcePattern] {
    try texts.map { try #require(SourcePattern($0)) }
  }

  /// URLs of the private image, as an attacker writes them.
  private var privateURLs: [String] {
    [
      "/private/a", "/public/../private/a", "/public/%2e%2e/private/a", "/public/..%2fprivate/a",
      "/public/..\\private/a", "/%70rivate/a", "//private/a", "/public/..;/private/a",
    ].map { origin.url($0) } + [other.url("/public/a"), origin.url("/public/a", host: "localhost")]
  }

  @Test func `only the allowed port and path are requested, also after redirects`() async throws {
    // Given
    let allowed = try patterns("127.0.0.1:\(origin.port)/public")
    let downloader = try makeDownloader { $0.hosts.allowed = allowed }
    origin.route("/public/here", to: .redirect(to: "/public/a"))
    #expect(try await downloader.load(origin.url("/public/a")).file.bytes == body)
    #expect(try await downloader.load(origin.url("/public/here")).file.bytes == body)
    let requests = origin.totalRequests
    // When an attacker asks directly, and lets an allowed URL redirect
    for (number, url) in privateURLs.enumerated() {
      origin.route("/public/\(number)", to: .redirect(to: url))
      for url in [url, origin.url("/public/\(number)")] {
        // Then
        let failure = await downloader.failure(of: url)
        guard case .forbiddenSource(let reason, _, let key)? = failure else {
          Issue.record("\(url): \(String(describing: failure))")
          continue
        }
        #expect(reason.hasSuffix("is not on the allow list") && key == "download.allow_hosts")
      }
    }
    #expect(origin.totalRequests == requests + privateURLs.count)
    #expect(origin.requests(to: "/private/a") == 0 && other.totalRequests == 0)
  }

  @Test func `no denied port and path is requested, also after redirects`() async throws {
    // Given
    let denied = try patterns("*:\(origin.port)/private", "127.0.0.1:\(other.port)")
    let downloader = try makeDownloader { $0.hosts.denied = denied }
    let urls = privateURLs.dropLast()
    for (number, url) in urls.enumerated() {
      origin.route("/to/\(number)", to: .redirect(to: url))
      for url in [url, origin.url("/to/\(number)")] {
        let failure = await downloader.failure(of: url)
        #expect(
          failure?.message
            == "the source may not be fetched: its port or path is on the deny list", "\(url)")
        #expect(failure?.decidingKey == "download.deny_hosts")
      }
    }
    #expect(origin.requests(to: "/private/a") == 0 && other.totalRequests == 0)
    #expect(try await downloader.load(origin.url("/public/a")).file.bytes == body)
    // A denied port of one name does not deny it under another.
    #expect(try await downloader.load(other.url("/a", host: "localhost")).file.bytes == body)
  }

  @Test func `only ports of the list are requested, also after redirects`() async throws {
    // Given
    let ports = [try #require(PortRange("\(origin.port)"))]
    let downloader = try makeDownloader { $0.hosts.ports = ports }
    origin.route("/to", to: .redirect(to: other.url("/a")))
    // Then
    #expect(try await downloader.load(origin.url("/a")).file.bytes == body)
    for url in [other.url("/a"), origin.url("/to"), "http://127.0.0.1/", "https://127.0.0.1/"] {
      let failure = await downloader.failure(of: url)
      #expect(failure?.status == 403 && failure?.decidingKey == "download.ports", "\(url)")
    }
    #expect(other.connections == 0)
  }

  @Test func `a pattern with a port adds the port for its hosts alone`() async throws {
    let ports = [try #require(PortRange("\(origin.port)"))]
    let allowed = try patterns("127.0.0.1", "127.0.0.1:\(other.port)", "localhost")
    let downloader = try makeDownloader {
      $0.hosts.ports = ports
      $0.hosts.allowed = allowed
    }
    #expect(try await downloader.load(other.url("/a")).file.bytes == body)
    let failure = await downloader.failure(of: other.url("/a", host: "localhost"))
    #expect(failure?.decidingKey == "download.ports")
  }

  @Test(arguments: [
    (80, true), (443, true), (1_024, true), (8_080, true), (65_535, true), (22, false), (25, false),
    (110, false), (445, false), (1_023, false), (81, false),
  ])
  func `by default, ports of mail, shells and other services are refused`(
    port: Int, isAllowed: Bool
  ) async throws {
    let hosts = DownloaderConfiguration().hosts
    #expect(hosts.ports.contains { $0.ports.contains(port) } == isAllowed)
    guard !isAllowed else { return }
    let failure = try await makeDownloader().failure(of: "http://127.0.0.1:\(port)/a")
    #expect(failure?.message == "the source may not be fetched: port \(port) is not allowed")
  }
}
