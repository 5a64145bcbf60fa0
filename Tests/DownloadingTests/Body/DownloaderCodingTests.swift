// DownloaderCodingTests: tests of unrequested content codings in Downloader.

import CDeflate
import Model
import Platform
import TestSupport
import Testing

@testable import Downloading

@Suite(.onOwnThreads) struct DownloaderCodingTests {
  private let body = (0..<60_000).map { UInt8(truncatingIfNeeded: $0 * $0 >> 4) }

  private typealias Compressor = (
    OpaquePointer?, UnsafeRawPointer?, Int, UnsafeMutableRawPointer?, Int
  ) -> Int

  private func compressed(_ bytes: [UInt8], by compress: Compressor) throws -> [UInt8] {
    let compressor = try #require(libdeflate_alloc_compressor(6))
    defer { libdeflate_free_compressor(compressor) }
    let capacity = bytes.count + 4_096
    let coded = [UInt8](unsafeUninitializedCapacity: capacity) { buffer, count in
      count = compress(compressor, bytes, bytes.count, buffer.baseAddress, capacity)
    }
    try #require(!coded.isEmpty)
    return coded
  }

  private func gzip(_ bytes: [UInt8]) throws -> [UInt8] {
    try compressed(bytes, by: libdeflate_gzip_compress)
  }

  /// An uncompressed meta-block and an empty last one (RFC 7932, section 9).
  private func brotli(_ bytes: [UInt8]) -> [UInt8] {
    let head = (bytes.count - 1) << 4 | 1 << 20
    return [UInt8(head & 0xff), UInt8(head >> 8 & 0xff), UInt8(head >> 16)] + bytes + [0x03]
  }

  @Test func `an unrequested content coding is decoded, both complete and while streaming`()
    async throws
  {
    // Given
    let origin = try Origin()
    let codings: [(String, [UInt8])] = [
      ("gzip", try gzip(body)), ("x-gzip", try gzip(body)), ("GZip", try gzip(body)),
      ("deflate", try compressed(body, by: libdeflate_zlib_compress)),
      ("deflate", try compressed(body, by: libdeflate_deflate_compress)), ("br", brotli(body)),
      ("identity", body),
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
        #expect(coming.expected == nil || coding == "identity", "\(coding)")
      }
    }
    // And no coding was requested.
    #expect(origin.received(at: "/0").allSatisfy { $0.headers["accept-encoding"] == "identity" })
  }

  @Test func `a body that decodes beyond the limit is refused while it arrives`() async throws {
    // Given: eight megabytes in eight kilobytes
    let origin = try Origin()
    let bomb = try gzip([UInt8](repeating: 0, count: 8 << 20))
    #expect(bomb.count < 20_000)
    origin.serve("/bomb", bytes: bomb, headers: ["Content-Encoding: gzip"])
    let downloader = try makeDownloader { $0.maximumBytes = 100_000 }
    // When
    let failure = await downloader.failure(of: origin.url("/bomb"))
    // Then
    #expect(failure == .sourceTooLarge(limit: 100_000))
  }

  @Test func `a damaged, unknown or repeated coding is an error`() async throws {
    // Given
    let origin = try Origin()
    var damaged = try gzip(body)
    damaged[damaged.count / 2] ^= 0xff
    damaged[damaged.count - 6] ^= 0xff
    origin.serve("/damaged", bytes: damaged, headers: ["Content-Encoding: gzip"])
    origin.serve("/plain", bytes: body, headers: ["Content-Encoding: gzip"])
    origin.serve("/unknown", bytes: body, headers: ["Content-Encoding: compress"])
    origin.serve(
      "/twice", bytes: try gzip(try gzip(body)), headers: ["Content-Encoding: gzip, gzip"])
    origin.serve(
      "/lines", bytes: try gzip(try gzip(body)),
      headers: ["Content-Encoding: gzip", "Content-Encoding: gzip"])
    origin.serve("/more", bytes: try gzip(body) + [1, 2, 3], headers: ["Content-Encoding: gzip"])
    origin.serve(
      "/members", bytes: try gzip(body) + gzip(body), headers: ["Content-Encoding: gzip"])
    let codes = [
      ("/damaged", "source_incomplete"), ("/plain", "source_incomplete"),
      ("/more", "source_incomplete"), ("/members", "source_incomplete"),
      ("/unknown", "unsupported_format"), ("/twice", "unsupported_format"),
      ("/lines", "unsupported_format"),
    ]
    let downloader = try makeDownloader()
    for (path, code) in codes {
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
