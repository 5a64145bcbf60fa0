// DownloaderTLSTests: tests of TLS and HTTP/2, with nginx and a test certificate.

@testable import Core
import Downloading
import TestSupport
import Testing

@Suite(.onOwnThreads) struct DownloaderTLSTests {
  private let image = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 7 >> 2) }

  @Test(arguments: [false, true])
  func `concurrent loads from a trusted origin share one HTTP/2 connection, also those of one rule`(
    hasRule: Bool
  ) async throws {
    // Given
    let nginx = try await Nginx(files: ["a.jpg": image])
    let rules = hasRule ? [HostRule(host: try #require(HostPattern("localhost")))] : []
    let downloader = try makeDownloader {
      $0.caFile = nginx.certificate
      $0.hostRules = rules
      $0.limitPerHost = 20
    }
    // When: twenty concurrent loads, without an open connection for the first one
    let loads = try await withThrowingTaskGroup(of: Download.self) { group in
      for number in 0..<20 {
        group.addTask { try await downloader.load(nginx.url("/a.jpg?\(number)")) }
      }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    // Then
    for load in loads { #expect(load.file.bytes == image) }
    #expect(loads.count { $0.timings.tls != nil } == 1)
    #expect(loads.contains { $0.origin.contentType == "image/jpeg" && $0.origin.etag != nil })
    let answers = try await nginx.accessLog(of: 20)
    // Each line is the connection's number and the protocol.
    #expect(Set(answers).count == 1)
    #expect(answers.allSatisfy { $0.hasSuffix(" HTTP/2.0") })
  }

  @Test func `with little memory left HTTP/1.1 is used, and a body over HTTP/2 does not wait`()
    async throws
  {
    // Given memory for a body and a third
    let nginx = try await Nginx(files: ["a.jpg": image])
    let memory = ByteBudget(limit: 400_000)
    var configuration = DownloaderConfiguration()
    configuration.allowedNetworks = [try #require(CIDR("127.0.0.0/8"))]
    configuration.caFile = nginx.certificate
    configuration.timeout = .seconds(60)
    let downloader = try Downloader(configuration: configuration, bodies: memory, log: .silent)
    // When less than half of it is in use
    var held = memory.lease(190_000)
    let failure = await downloader.failure(of: nginx.url("/a.jpg?1"))
    // Then HTTP/2 is used, and the body does not wait
    #expect(failure?.decidingKey == "memory.budget")
    withExtendedLifetime(held) {}
    // When more of it is in use
    held = nil
    held = memory.lease(210_000)
    let load = Task { try await downloader.load(nginx.url("/a.jpg?2")) }
    try await eventually("it waits") { downloader.figures.waitingForMemory == 1 }
    withExtendedLifetime(held) {}
    held = nil
    // Then it waits, and HTTP/1.1 was used
    #expect(try await load.value.file.bytes == image)
    #expect(try await nginx.accessLog(of: 2).last?.hasSuffix(" HTTP/1.1") == true)
  }

  @Test func `a connection that was opened without verification serves no other rule`() async throws
  {
    // Given an unverified connection of one rule, and a verified one of another, to one TLS server
    let nginx = try await Nginx(files: ["a.jpg": image])
    var unverified = HostRule(host: try #require(HostPattern("127.0.0.1")))
    unverified.allowsInvalidCertificates = true
    var secret = HostRule(host: try #require(HostPattern("localhost")))
    secret.secretHeaders = [try #require(HeaderField(bearer: "s3cret"))]
    secret.credentialOrigins = [
      try #require(HostRule.CredentialOrigin("https:\(nginx.port)"))
    ]
    let rules = [unverified, secret]
    let downloader = try makeDownloader {
      $0.caFile = nginx.certificate
      $0.hostRules = rules
    }
    // When both load, in turn
    for number in 0..<2 {
      for host in ["127.0.0.1", "localhost", "a.localhost"]
      where number == 0 || host != "a.localhost" {
        let url = nginx.url("/a.jpg?\(number)", host: host)
        guard host != "a.localhost" else {
          // No rule: the certificate is for another name.
          #expect(await downloader.failure(of: url)?.code == "source_tls")
          continue
        }
        #expect(try await downloader.load(url).file.bytes == image)
      }
    }
    // Then each rule has one connection
    let connections = try await nginx.accessLog(of: 4).map { $0.prefix { $0 != " " } }
    #expect(connections[0] == connections[2] && connections[1] == connections[3])
    #expect(connections[0] != connections[1])
  }

  @Test func `a missing CA file trusts no certificate`() async throws {
    let nginx = try await Nginx(files: ["a.jpg": image])
    let downloader = try makeDownloader { $0.caFile = "/nowhere/ca.pem" }
    #expect(await downloader.failure(of: nginx.url("/a.jpg"))?.code == "source_tls")
  }

  @Test func `TLS loads are limited and refused like others`() async throws {
    let nginx = try await Nginx(files: ["a.jpg": image])
    let downloader = try makeDownloader {
      $0.caFile = nginx.certificate
      $0.maximumBytes = 1_000
    }
    let failure = await downloader.failure(of: nginx.url("/a.jpg"))
    #expect(failure == .sourceTooLarge(limit: 1_000))
    let missing = await downloader.failure(of: nginx.url("/none"))
    #expect(missing == .sourceNotFound(status: 404))
    let closed = try makeDownloader {
      $0.caFile = nginx.certificate
      $0.allowedNetworks = []
    }
    #expect(await closed.failure(of: nginx.url("/a.jpg"))?.code == "forbidden_source")
  }
}
