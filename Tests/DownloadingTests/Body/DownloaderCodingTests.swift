// DownloaderCodingTests: tests of unrequested content codings in Downloader.

@testable import Core
import TestSupport
import Testing

@testable import Downloading

@Suite(.onOwnThreads) struct DownloaderCodingTests {
  private let body = (0..<60_000).map { UInt8(truncatingIfNeeded: $0 * $0 >> 4) }

  private func gzip(_ bytes: [UInt8]) -> [UInt8] { TestCoding.gzip.encode(bytes) }

  @Test func `an unrequested content coding is decoded, both complete and while streaming`()
    async throws
  {
    // Given
    let origin = try Origin()
    let codings: [(String, [UInt8])] =
      TestCoding.allCases.map { ($0.name, $0.encode(body)) } + [
        ("x-gzip", gzip(body)), ("GZip", gzip(body)), ("identity", body),
        ("gzip, identity", gzip(body)), ("Identity , x-gzip", gzip(body)),
        // What names no coding says nothing about the bytes.
        ("gzip,aws-chunked", gzip(body)), ("aws-chunked", body), ("UTF-8", body), ("none", body),
        ("binary", body), ("null", body), ("base64", body), ("compress", body),
        // Frames one after the other are one body (RFC 8878, section 3).
        (
          "zstd",
          TestCoding.zstd.encode(Array(body[..<100])) + TestCoding.zstd.encode(Array(body[100...]))
        ),
      ]
    let downloader = try makeDownloader()
    for (number, (coding, coded)) in codings.enumerated() {
      let fields = ["Content-Encoding: \(coding)"]
      origin.serve("/\(number)", bytes: coded, headers: fields)
      origin.route(
        "/\(number)c",
        to: OriginReply([
          .send(OriginReply.head(200, headers: fields + ["Transfer-Encoding: chunked"])),
          .send(OriginReply.chunk(coded) + Array("0\r\n\r\n".utf8)),
        ]))
      for path in ["/\(number)", "/\(number)c"] {
        // When
        let offered = Lock<(any StreamingBody)?>(nil)
        let request = LoadRequest(
          url: try SourceURL(parsing: origin.url(path)),
          onBody: { body in offered.withLock { $0 = body } })
        guard case .fetched(let download) = try await downloader.load(request) else {
          Issue.record("\(coding) was not fetched")
          continue
        }
        // Then
        #expect(download.file.bytes == body, "\(coding)")
        let coming = try #require(offered.withLock { $0 })
        #expect(coming.isComplete, "\(coding)")
        #expect(coming.expected == nil || coded == body, "\(coding)")
      }
    }
    // And no coding was requested.
    #expect(origin.received(at: "/0").allSatisfy { $0.headers["accept-encoding"] == "identity" })
  }

  @Test(arguments: TestCoding.allCases)
  func `a body that decodes beyond the limit is refused while it arrives`(
    coding: TestCoding
  ) async throws {
    // Given: eight megabytes in eight kilobytes, and nothing follows them
    let origin = try Origin()
    let bomb = coding.encode([UInt8](repeating: 0, count: 8 << 20))
    #expect(bomb.count < 20_000)
    origin.route(
      "/bomb",
      to: OriginReply([
        .send(OriginReply.head(200, headers: [coding.field, "Content-Length: 50000"])),
        .send(bomb), .silence,
      ]))
    let memory = ByteBudget.unlimited
    let downloader = try makeDownloader(bodies: memory) { $0.maximumBytes = 100_000 }
    // When
    let failure = await downloader.failure(of: origin.url("/bomb"))
    // Then
    #expect(failure == .sourceTooLarge(limit: 100_000))
    #expect(memory.peak <= 100_000)
  }

  @Test func `a coded body is limited as well, even if it decodes to nothing`() async throws {
    // Given: stored blocks of no bytes, without end (RFC 1951, section 3.2.4)
    let origin = try Origin()
    let blocks = Array(repeatElement([0, 0, 0, 0xff, 0xff] as [UInt8], count: 2_000).joined())
    origin.route(
      "/empty",
      to: OriginReply([
        .send(OriginReply.head(200, headers: ["Content-Encoding: deflate", "Connection: close"])),
        .sendForever(blocks),
      ]))
    let downloader = try makeDownloader { $0.maximumBytes = 100_000 }
    // Then
    #expect(
      await downloader.failure(of: origin.url("/empty")) == .sourceTooLarge(limit: 100_000))
  }

  @Test func `a coded body whose decoding is slow beyond measure is refused before it ends`()
    async throws
  {
    // Given two megabytes that take Brotli's decoder a second, and would delay other transfers
    let origin = try Origin()
    origin.serve(
      "/slow", bytes: CostlyBrotli.stream(count: 2 << 20), headers: [TestCoding.br.field])
    // Then
    #expect(
      await (try makeDownloader()).failure(of: origin.url("/slow"))
        == .tooCostly(reason: "br: decoding takes too long"))
  }

  @Test(arguments: TestCoding.allCases)
  func `a coded body that ends early is incomplete, and its readers are told`(
    coding: TestCoding
  ) async throws {
    let origin = try Origin()
    let downloader = try makeDownloader()
    let coded = coding.encode(body)
    for missing in [1, 4, coded.count / 2, coded.count - 1] {
      // Given: the length that the header says
      origin.serve("/a", bytes: Array(coded.dropLast(missing)), headers: [coding.field])
      let offered = Lock<(any StreamingBody)?>(nil)
      let request = LoadRequest(
        url: try SourceURL(parsing: origin.url("/a")),
        onBody: { body in offered.withLock { $0 = body } })
      // When
      let failure = await #expect(throws: ImageError.self) { try await downloader.load(request) }
      // Then
      #expect(failure?.code == "source_incomplete", "\(missing) bytes missing")
      let coming = try #require(offered.withLock { $0 })
      var buffer = [UInt8](repeating: 0, count: 1)
      let end = buffer.withUnsafeMutableBytes { coming.read(at: body.count, into: $0) }
      #expect(end == .failed)
    }
  }

  @Test func `a coded body of nothing is empty`() async throws {
    let origin = try Origin()
    let downloader = try makeDownloader()
    for coding in TestCoding.allCases {
      // Given
      origin.serve("/coded", bytes: coding.encode([]), headers: [coding.field])
      origin.serve("/none", bytes: [], headers: [coding.field])
      // Then
      for path in ["/coded", "/none"] {
        let failure = await downloader.failure(of: origin.url(path))
        #expect(failure == .unsupportedFormat(detail: "empty body"), "\(coding) \(path)")
      }
    }
  }

  @Test func `a Zstandard window is at most 8 MiB`() async throws {
    // Given (RFC 9659)
    let origin = try Origin()
    let allowed = TestCoding.zstd(body, windowLog: 23)
    let tooLarge = TestCoding.zstd(body, windowLog: 24)
    origin.serve("/allowed", bytes: allowed, headers: ["Content-Encoding: zstd"])
    origin.serve("/large", bytes: tooLarge, headers: ["Content-Encoding: zstd"])
    let downloader = try makeDownloader()
    // Then
    #expect(try await downloader.load(origin.url("/allowed")).file.bytes == body)
    #expect(await downloader.failure(of: origin.url("/large"))?.code == "source_incomplete")
  }

  @Test func `a gzip transfer coding is decoded or refused`() async throws {
    let origin = try Origin()
    origin.route(
      "/a",
      to: OriginReply([
        .send(OriginReply.head(200, headers: ["Transfer-Encoding: gzip, chunked"])),
        .send(OriginReply.chunk(gzip(body)) + Array("0\r\n\r\n".utf8)),
      ]))
    // Newer versions of curl refuse what was not asked for.
    do {
      let load = try await makeDownloader().load(origin.url("/a"))
      #expect(load.file.bytes == body)
    } catch {
      #expect("\(error)".contains("Unsolicited Transfer-Encoding"))
    }
  }

  @Test func `a damaged, unknown or repeated coding is an error`() async throws {
    // Given
    let origin = try Origin()
    for coding in TestCoding.allCases {
      var damaged = coding.encode(body)
      for place in [2, 3, damaged.count / 2, damaged.count - 6] { damaged[place] ^= 0xff }
      origin.serve("/damaged-\(coding)", bytes: damaged, headers: [coding.field])
      origin.serve(
        "/more-\(coding)", bytes: coding.encode(body) + [1, 2, 3, 4, 5], headers: [coding.field])
    }
    origin.serve("/plain", bytes: body, headers: ["Content-Encoding: gzip"])
    origin.serve(
      "/twice", bytes: gzip(gzip(body)), headers: ["Content-Encoding: gzip, gzip"])
    origin.serve(
      "/lines", bytes: gzip(gzip(body)),
      headers: ["Content-Encoding: gzip", "Content-Encoding: gzip"])
    origin.serve(
      "/members", bytes: gzip(body) + gzip(body), headers: ["Content-Encoding: gzip"])
    let codes = [
      ("/plain", "source_incomplete"), ("/members", "source_incomplete"),
      ("/twice", "unsupported_format"), ("/lines", "unsupported_format"),
    ]
    let everyCoding = TestCoding.allCases.flatMap { coding in
      ["/damaged-\(coding)", "/more-\(coding)"].map { ($0, "source_incomplete") }
    }
    let downloader = try makeDownloader()
    for (path, code) in codes + everyCoding {
      // Then
      #expect(await downloader.failure(of: origin.url(path))?.code == code, "\(path)")
    }
  }

  @Test func `when a rule drops Accept-Encoding, curl adds none`() async throws {
    // Given
    let origin = try Origin()
    origin.serve("/a", bytes: body)
    var rule = HostRule(host: try #require(HostPattern("127.0.0.1")))
    rule.droppedHeaders = ["Accept-Encoding"]
    let downloader = try makeDownloader { $0.hostRules = [rule] }
    // When
    _ = try await downloader.load(origin.url("/a"))
    // Then
    #expect(origin.received(at: "/a").map { $0.headers["accept-encoding"] } == [nil])
  }
}
