// DownloaderCodedDigestTests: tests of digests of bodies with a content coding in Downloader.

import Core
import TestSupport
import Testing

@testable import Downloading

@Suite(.onOwnThreads) struct DownloaderCodedDigestTests {
  private let body = (0..<60_000).map { UInt8(truncatingIfNeeded: $0 * $0 >> 4) }

  /// Loads a URL, and returns the result and the body that was offered to readers.
  private func load(
    _ url: String, with downloader: Downloader
  ) async throws -> (Result<[UInt8], ImageError>, (any StreamingBody)?) {
    let offered = Lock<(any StreamingBody)?>(nil)
    let request = LoadRequest(
      url: try SourceURL(parsing: url), onBody: { body in offered.withLock { $0 = body } })
    do throws(ImageError) {
      guard case .fetched(let download) = try await downloader.load(request) else {
        return (.failure(.internal(detail: "not modified")), nil)
      }
      return (.success(download.file.bytes), offered.withLock { $0 })
    } catch {
      return (.failure(error), offered.withLock { $0 })
    }
  }

  private func read(_ coming: any StreamingBody) -> (bytes: [UInt8], end: PartialRead) {
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 100_000)
    while true {
      let read = buffer.withUnsafeMutableBytes { coming.read(at: bytes.count, into: $0) }
      guard case .bytes(let count) = read else { return (bytes, read) }
      bytes += buffer[..<count]
    }
  }

  @Test(arguments: TestCoding.allCases)
  func `a digest of the coded bytes is verified before the last decoded byte is released`(
    coding: TestCoding
  ) async throws {
    let origin = try Origin()
    let downloader = try makeDownloader()
    let coded = coding.encode(body)
    for field in DigestField.allCases {
      // Given: the right digest, and that of the decoded bytes, which is wrong
      origin.serve("/right", bytes: coded, headers: [coding.field, field.line(for: coded)])
      origin.serve("/wrong", bytes: coded, headers: [coding.field, field.line(for: body)])
      // When
      let right = try await load(origin.url("/right"), with: downloader)
      let wrong = try await load(origin.url("/wrong"), with: downloader)
      // Then
      #expect(try right.0.get() == body, "\(field)")
      let rightReader = read(try #require(right.1))
      #expect(rightReader.bytes == body && rightReader.end == .end, "\(field)")
      #expect(wrong.0.failure?.code == "source_incomplete", "\(field)")
      #expect(wrong.0.failure?.logDetail?.contains("does not match the body") == true, "\(field)")
      let wrongReader = read(try #require(wrong.1))
      #expect(wrongReader.bytes == body.dropLast() && wrongReader.end == .failed, "\(field)")
    }
  }

  @Test func `a coded body has no other memory than its own after its verification`() async throws {
    // Given
    let origin = try Origin()
    let coded = TestCoding.gzip.encode(body)
    let field = DigestField.contentDigest.line(for: coded)
    origin.serve("/a", bytes: coded, headers: [TestCoding.gzip.field, field])
    let memory = ByteBudget.unlimited
    let downloader = try makeDownloader(bodies: memory)
    // When
    let download = try await downloader.load(origin.url("/a"))
    // Then
    try await eventually("the coded bytes are returned") { memory.used == body.count }
    #expect(memory.peak == body.count + coded.count)
    #expect(download.file.bytes == body)
  }

  @Test(arguments: TestCoding.allCases)
  func `a digest is verified after redirects, in chunks, and up to the end of a connection`(
    coding: TestCoding
  ) async throws {
    // Given
    let origin = try Origin()
    let downloader = try makeDownloader()
    let coded = coding.encode(body)
    for (path, covered) in [("/right", coded), ("/wrong", body)] {
      let fields = [coding.field, DigestField.contentDigest.line(for: covered)]
      // The redirect's own body is not decoded, and its digest covers nothing of the image.
      origin.route(
        "\(path)-moved",
        to: OriginReply([
          .send(
            OriginReply.head(
              302,
              headers: [
                "Location: \(path)-chunks", "Content-Length: 3",
                DigestField.contentMD5.line(for: body), coding.field,
              ])), .send([1, 2, 3]),
        ]))
      origin.route(
        "\(path)-chunks",
        to: OriginReply([
          .send(OriginReply.head(200, headers: fields + ["Transfer-Encoding: chunked"])),
          .send(OriginReply.chunk(Array(coded.prefix(1)))),
          .send(OriginReply.chunk(Array(coded.dropFirst())) + Array("0\r\n\r\n".utf8)),
        ]))
      origin.route(
        "\(path)-close",
        to: OriginReply([
          .send(OriginReply.head(200, headers: fields + ["Connection: close"])), .send(coded),
          .close,
        ]))
      for suffix in ["-moved", "-chunks", "-close"] {
        // When
        let (result, _) = try await load(origin.url(path + suffix), with: downloader)
        // Then
        if path == "/right" {
          #expect(try result.get() == body, "\(suffix)")
        } else {
          #expect(result.failure?.code == "source_incomplete", "\(suffix)")
        }
      }
    }
  }
}
