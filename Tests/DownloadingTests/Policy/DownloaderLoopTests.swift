// Loop detection: origins get the servers that a load passed; this server's own is refused.

@testable import Core
import Glibc
import TestSupport
import Testing

@testable import Downloading

@Suite(.onOwnThreads) struct DownloaderLoopTests {
  private let origin: Origin

  init() throws {
    origin = try Origin()
    origin.serve("/a", bytes: Array("image".utf8))
  }

  private func request(_ url: String, trail: String = "") throws -> LoadRequest {
    LoadRequest(url: try SourceURL(parsing: url), trail: ServerTrail(parsing: trail))
  }

  // MARK: Fields

  @Test func `CDN-Loop and Via name this server and earlier servers`() async throws {
    origin.route("/r", to: .redirect(to: "/a"))
    let downloader = try makeDownloader { $0.serverID = "me" }
    _ = try await downloader.load(try request(origin.url("/r"), trail: "cloudflare; loops=1, b"))
    for path in ["/r", "/a"] {
      let headers = try #require(origin.received(at: path).last).headers
      #expect(headers["cdn-loop"] == "cloudflare; loops=1, b, me")
      #expect(headers["via"] == "1.1 me")
    }
    _ = try await downloader.load(try request(origin.url("/a")))
    #expect(origin.received(at: "/a").last?.headers["cdn-loop"] == "me")
  }

  @Test func `no host rule can remove or change CDN-Loop`() async throws {
    var rule = HostRule(host: try #require(HostPattern("*")))
    rule.droppedHeaders = ["CDN-Loop", "Via"]
    rule.forwardedHeaders = ["CDN-Loop"]
    rule.headers = [try #require(HeaderField("Cdn-Loop", value: "x"))]
    let rules = [rule]
    let downloader = try makeDownloader {
      $0.serverID = "me"
      $0.hostRules = rules
    }
    let field = try #require(HeaderField("CDN-Loop", value: "forged"))
    _ = try await downloader.load(
      LoadRequest(
        url: try SourceURL(parsing: origin.url("/a")), forwarded: [field],
        trail: ServerTrail(parsing: "b")))
    let headers = try #require(origin.received(at: "/a").last).headers
    #expect(headers["cdn-loop"] == "b, me")
    #expect(headers["via"] == nil)
  }

  // MARK: Addresses

  @Test(arguments: [
    ("127.0.0.1", ["127.0.0.1", "127.1", "0.0.0.0", "[::ffff:127.0.0.1]"]),
    ("0.0.0.0", ["127.0.0.1", "127.0.0.2", "0.0.0.0"]),
    ("::", ["127.0.0.1", "[::1]", "localhost"]),
  ])
  func `the server's own address is refused in any spelling and after redirects`(
    listening: String, hosts: [String]
  ) async throws {
    let own = try Origin()
    own.serve("/a", bytes: Array("image".utf8))
    let downloader = try makeDownloader {
      $0.allowedNetworks = ["0.0.0.0/0", "::/0"].compactMap { CIDR($0) }
    }
    downloader.refuse(own: [
      ListenAddress(host: "203.0.113.1", port: 1), ListenAddress(host: listening, port: own.port),
    ])
    for host in hosts {
      let url = own.url("/a", host: host)
      origin.route("/r", to: .redirect(to: url))
      for url in [url, origin.url("/r")] {
        let failure = await downloader.failure(of: url)
        guard case .forbiddenSource(let reason, _, _)? = failure else {
          Issue.record("\(url): \(String(describing: failure))")
          continue
        }
        #expect(reason == "it is this server itself", "\(url)")
      }
    }
    #expect(own.connections == 0)
    // Another port of the same address is another server.
    #expect(try await downloader.load(origin.url("/a")).file.count == 5)
  }

  @Test func `only addresses of this machine count as the server's own`() throws {
    let own = OwnEndpoint()
    func isReached(_ address: String, port: Int = 80) throws -> Bool {
      own.isReached(by: try #require(IPAddress(address)), port: port)
    }
    #expect(try !isReached("127.0.0.1"))
    own.set([ListenAddress(host: "0.0.0.0", port: 80)])
    #expect(try isReached("127.0.0.1") && isReached("127.9.9.9") && isReached("::ffff:127.0.0.1"))
    #expect(try !isReached("127.0.0.1", port: 81) && !isReached("192.0.2.1") && !isReached("::1"))
    own.set([ListenAddress(host: "127.0.0.2", port: 80)])
    #expect(try isReached("127.0.0.2") && !isReached("127.0.0.1") && !isReached("0.0.0.0"))
    own.set([ListenAddress(host: "::", port: 80)])
    #expect(try isReached("::1") && isReached("127.0.0.1") && !isReached("2001:db8::1"))
    own.set([ListenAddress(host: "::1", port: 80)])
    #expect(try isReached("::") && !isReached("127.0.0.1"))
    // Beside IPv4 on the port, the socket on :: leaves IPv4 alone. No download uses unix sockets.
    own.set([
      ListenAddress(host: "::", port: 80), ListenAddress(host: "127.0.0.3", port: 80),
      .unix(path: "/run/pictor.sock"),
    ])
    #expect(try isReached("::1") && isReached("127.0.0.3") && !isReached("127.0.0.1"))
    for address in Self.interfaceAddresses() {
      own.set([ListenAddress(host: "0.0.0.0", port: 80)])
      #expect(try isReached(address), "\(address)")
    }
  }

  /// The IPv4 addresses of this machine's interfaces.
  private static func interfaceAddresses() -> [String] {
    var list: UnsafeMutablePointer<ifaddrs>?
    guard getifaddrs(&list) == 0 else { return [] }
    defer { freeifaddrs(list) }
    return sequence(first: list) { $0?.pointee.ifa_next }.prefix { $0 != nil }.compactMap { entry in
      guard let address = entry?.pointee.ifa_addr,
        case .v4(let value)? = IPAddress(
          UnsafeRawPointer(address), length: MemoryLayout<sockaddr_in>.size)
      else { return nil }
      return IPAddress.v4(value).description
    }
  }
}
