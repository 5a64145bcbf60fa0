// DownloaderNamesTests: a name with a refused address looks like one that does not exist.

import Core
import TestSupport
import Testing

@testable import Downloading

@Suite(.onOwnThreads) struct DownloaderNamesTests {
  private let hidden: Origin
  /// The host of a private network, at the hidden origin.
  private var known: String { "http://payroll.internal.example:\(hidden.port)/a" }
  /// A name that no resolver knows (RFC 6761, section 6.4).
  private var unknown: String { "http://payroll.invalid:\(hidden.port)/a" }

  init() throws {
    hidden = try Origin()
    hidden.serve("/a", bytes: [1, 2, 3])
  }

  private static let lookUp: NameResolver.Look = {
    $0 == "payroll.internal.example" ? .success([.v4(0x7f00_0001)]) : SystemNames.addresses(of: $0)
  }

  /// A downloader that resolves the known name, and may connect to IPv6 loopback alone.
  private func downloader(
    _ change: (inout DownloaderConfiguration) -> Void = { _ in }
  ) throws -> Downloader {
    try makeDownloader {
      $0.allowedNetworks.removeFirst()
      $0.lookUp = Self.lookUp
      $0.retryDelay = .milliseconds(1)
      change(&$0)
    }
  }

  private func expectSameAnswer(_ first: ImageError?, as second: ImageError?) throws {
    let first = try #require(first)
    let second = try #require(second)
    #expect(first.status == 502 && second.status == 502)
    #expect(first.code == second.code && first.message == second.message)
    #expect(first.parameter == second.parameter && first.retryAfter == second.retryAfter)
    // The operator is told.
    #expect(first.logDetail?.contains("127.0.0.1 (loopback)") == true)
    #expect(first.logDetail?.contains("download.allow_networks") == true)
    #expect(second.logDetail?.contains("allow_networks") == false)
    #expect(first.explainedMessage.contains("download.allow_networks"))
  }

  @Test func `a name with a refused address has the answer of a name that does not exist`()
    async throws
  {
    let downloader = try downloader()
    for _ in 0..<2 {
      try expectSameAnswer(
        await downloader.failure(of: known), as: await downloader.failure(of: unknown))
    }
    #expect(hidden.connections == 0)
    #expect(downloader.figures.failed == ["source_unreachable": 4])
  }

  @Test func `redirects to both names have the same answer`() async throws {
    let open = try Origin(on: "::1")
    open.route("/known", to: .redirect(to: known))
    open.route("/unknown", to: .redirect(to: unknown))
    let downloader = try downloader()
    try expectSameAnswer(
      await downloader.failure(of: open.url("/known")),
      as: await downloader.failure(of: open.url("/unknown")))
    #expect(hidden.connections == 0)
  }

  @Test func `both names are retried as often, and open the circuit breaker alike`() async throws {
    for url in [known, unknown] {
      let downloader = try downloader {
        $0.retries = 2
        $0.breakerThreshold = 2
      }
      for _ in 0..<2 {
        #expect(await downloader.failure(of: url)?.code == "source_unreachable")
      }
      #expect(downloader.figures.retries == 4, "\(url)")
      #expect(downloader.figures.circuitsOpen == 1, "\(url)")
    }
  }

  @Test func `an address and localhost in a URL are refused as such, since they are no secret`()
    async throws
  {
    // localhost may also be ::1.
    let downloader = try downloader { $0.allowedNetworks = [] }
    for host in ["127.0.0.1", "localhost", "a.localhost", "2130706433"] {
      #expect(await downloader.failure(of: hidden.url("/a", host: host))?.status == 403, "\(host)")
    }
  }

  @Test func `addresses of a refused name are forgotten as soon as a name that does not exist`()
    async throws
  {
    let lookUps = Lock(0)
    let downloader = try makeDownloader {
      $0.allowedNetworks = []
      $0.names.lifetime = .seconds(600)
      $0.names.negativeLifetime = .zero
      $0.retries = 0
      $0.lookUp = { _ in
        lookUps.withLock { $0 += 1 }
        return .success([.v4(0x7f00_0001)])
      }
    }
    for count in 1...3 {
      #expect(await downloader.failure(of: "http://payroll.internal.example/a")?.status == 502)
      #expect(lookUps.withLock { $0 } == count)
    }
  }

  @Test func `a name with an allowed address is loaded, also after it was refused`() async throws {
    let allowed = try makeDownloader { $0.lookUp = Self.lookUp }
    #expect(try await allowed.load(known).file.bytes == [1, 2, 3])
  }
}
