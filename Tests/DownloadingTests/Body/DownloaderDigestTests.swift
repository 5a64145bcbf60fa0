// DownloaderDigestTests: tests of body digests in Downloader: matching, wrong and unusable ones.

import Core
import TestSupport
import Testing

@testable import Downloading

@Suite(.onOwnThreads) struct DownloaderDigestTests {
  private let body = Array("123456789".utf8)
  private static let sha256 = "FeKw08M4keuw8e9gnsQZQgwg4yDOlMZfvIwzEkSOsiU="
  private static let sha512 =
    "2eZ2LdHI6vbWGzxhkvxAjU1tXxF20MKRabwk5xw/J0rSf81YEbMT1oH35V7ALXPUmclUVba1u1A6z1dPuo/+hQ=="
  private static let wrong = "FeKw08M4keuw8e9gnsQZQgwg4yDOlMZfvIwzEkSOsiA="

  /// Fields with correct digests of the nine digits, from the algorithms' published test vectors.
  private static let right = [
    "Content-Digest: sha-256=:\(sha256):", "Content-Digest: sha-512=:\(sha512):",
    "Repr-Digest: sha-512=:\(sha512):, sha-256=:\(sha256):",
    "Repr-Digest: sha-256=:\(sha256):;a=1", "Content-Digest: md5=:JfnnlDI7RTiF9RgfG2JNCw==:",
    "Content-Digest: sha=:98O8HYCOBHMq32eZZczDTKeuNEE=:", "Content-Digest: crc32c=:4waSgw==:",
    "Content-MD5: JfnnlDI7RTiF9RgfG2JNCw==", "x-amz-checksum-crc32: y/Q5Jg==",
    "x-amz-checksum-crc32c: 4waSgw==", "x-amz-checksum-sha1: 98O8HYCOBHMq32eZZczDTKeuNEE=",
    "x-amz-checksum-sha256: \(sha256)", "x-amz-checksum-crc64nvme: rosUhgp5mIg=",
  ]

  /// Fields without a usable digest.
  private static let meaningless = [
    "Content-Digest: sha-256=\(wrong)", "Content-Digest: sha-256=:not base64:",
    "Content-Digest: sha-256=:y/Q5Jg==:", "Content-Digest: unixsum=:\(wrong):",
    "Content-Digest: sha-256", "Content-Digest: =:::", "Content-MD5: y/Q5Jg==", "Content-MD5: ?",
    "x-amz-checksum-crc64nvme: 4waSgw==", "x-amz-checksum-xxhash3: AAAAAAAAAAA=",
    "x-amz-checksum-sha256: \(wrong)-3",
    "Want-Repr-Digest: sha-256=10",
  ]

  @Test func `a body with matching or unusable digests is accepted`() async throws {
    let origin = try Origin()
    let downloader = try makeDownloader()
    for (number, field) in (Self.right + Self.meaningless).enumerated() {
      // Given
      origin.serve("/\(number)", bytes: body, headers: [field])
      // Then
      #expect(try await downloader.load(origin.url("/\(number)")).file.bytes == body, "\(field)")
    }
  }

  @Test func `a body with any wrong digest is source_incomplete`() async throws {
    let origin = try Origin()
    let downloader = try makeDownloader()
    let other = Array("123456780".utf8)
    let count = Self.right.count
    for (number, field) in Self.right.enumerated() {
      // Given
      origin.serve("/\(number)", bytes: other, headers: [field])
      origin.serve(
        "/\(number)r", bytes: body, headers: [field, "Repr-Digest: sha-256=:\(Self.wrong):"])
      // Then
      for path in ["/\(number)", "/\(number)r"] {
        let failure = await downloader.failure(of: origin.url(path))
        #expect(failure?.code == "source_incomplete" && failure?.status == 502, "\(field)")
        #expect(failure?.logDetail?.contains("does not match the body") == true)
      }
    }
    #expect(downloader.figures.failed == ["source_incomplete": 2 * count])
    #expect(downloader.figures.running == 0)
  }

  @Test func `a composite S3 checksum is not compared with the body`() async throws {
    // Given
    let origin = try Origin()
    let fields = ["x-amz-checksum-sha256: \(Self.wrong)", "x-amz-checksum-type: COMPOSITE"]
    origin.serve("/a", bytes: body, headers: fields)
    origin.serve("/b", bytes: body, headers: fields.reversed())
    origin.serve("/c", bytes: body, headers: [fields[0], "x-amz-checksum-type: FULL_OBJECT"])
    let downloader = try makeDownloader()
    // Then
    #expect(try await downloader.load(origin.url("/a")).file.bytes == body)
    #expect(try await downloader.load(origin.url("/b")).file.bytes == body)
    #expect(await downloader.failure(of: origin.url("/c"))?.code == "source_incomplete")
  }

  @Test func `digests in announced trailers count`() async throws {
    // Given
    let origin = try Origin()
    let downloader = try makeDownloader()
    let (right, wrong) = (
      "Content-Digest: sha-256=:\(Self.sha256):", "Repr-Digest: sha-256=:\(Self.wrong):"
    )
    let announced = ["Trailer: Expires, Content-Digest", "Trailer: repr-digest"]
    func serve(_ path: String, _ headers: [String], trailers: [String]) {
      origin.route(path, to: .chunked(body, size: 4, headers: headers, trailers: trailers))
    }
    serve("/right", announced, trailers: ["Expires: 0", right])
    serve("/missing", announced, trailers: [])
    serve("/unreadable", announced, trailers: ["Content-Digest: ?"])
    serve("/unannounced", [], trailers: [wrong])
    serve("/others", ["Trailer: Server-Timing"], trailers: [wrong])
    serve("/wrong", announced, trailers: [right, wrong])
    serve("/late", ["Trailer: x-amz-checksum-crc32"], trailers: ["x-amz-checksum-crc32: AAAAAA=="])
    serve("/broken", announced, trailers: [right, "no field"])
    // Then
    for path in ["/right", "/missing", "/unreadable", "/unannounced", "/others"] {
      #expect(try await downloader.load(origin.url(path)).file.bytes == body, "\(path)")
    }
    for path in ["/wrong", "/late", "/broken"] {
      let failure = await downloader.failure(of: origin.url(path))
      #expect(failure?.code == "source_incomplete", "\(path)")
    }
  }

  @Test(arguments: [true, false])
  func `the last byte of a streamed body waits for announced trailers`(isRight: Bool) async throws {
    // Given: a body whose trailers come when the gate opens
    let origin = try Origin()
    let downloader = try makeDownloader()
    let gate = Gate()
    let digest = isRight ? Self.sha256 : Self.wrong
    var reply = OriginReply.chunked(
      body, size: 9, headers: ["Trailer: Content-Digest"],
      trailers: ["Content-Digest: sha-256=:\(digest):"])
    guard case .send(let sent) = reply.steps.removeLast() else { return }
    // The chunk: its size, the nine digits
    reply.steps += [.send(Array(sent[..<14])), .hold(gate), .send(Array(sent[14...]))]
    origin.route("/a", to: reply)
    let offered = Lock<(any StreamingBody)?>(nil)
    let request = LoadRequest(
      url: try SourceURL(parsing: origin.url("/a")),
      onBody: { body in offered.withLock { $0 = body } })
    // When
    let load = Task { try await downloader.load(request) }
    var buffer = [UInt8](repeating: 0, count: 20)
    try await eventually("all but the last byte") {
      let coming = offered.withLock { $0 }
      return buffer.withUnsafeMutableBytes { coming?.read(at: 0, into: $0) } == .bytes(8)
    }
    gate.open()
    // Then
    #expect(((try? await load.value) != nil) == isRight)
    let coming = try #require(offered.withLock { $0 })
    let last = buffer.withUnsafeMutableBytes { coming.read(at: 8, into: $0) }
    #expect(last == (isRight ? .bytes(1) : .failed))
  }

  @Test func `the last byte of a streamed body is released after its digest is verified`()
    async throws
  {
    // Given
    let origin = try Origin()
    origin.serve("/right", bytes: body, headers: ["Content-Digest: sha-256=:\(Self.sha256):"])
    origin.serve("/wrong", bytes: body, headers: ["Content-Digest: sha-256=:\(Self.wrong):"])
    let downloader = try makeDownloader()
    for (path, ends) in [("/right", PartialRead.end), ("/wrong", .failed)] {
      let offered = Lock<(any StreamingBody)?>(nil)
      // When
      let request = LoadRequest(
        url: try SourceURL(parsing: origin.url(path)),
        onBody: { body in offered.withLock { $0 = body } })
      _ = try? await downloader.load(request)
      // Then
      let coming = try #require(offered.withLock { $0 })
      var buffer = [UInt8](repeating: 0, count: 20)
      let first = buffer.withUnsafeMutableBytes { coming.read(at: 0, into: $0) }
      #expect(first == .bytes(ends == .end ? body.count : body.count - 1))
      let last = buffer.withUnsafeMutableBytes { coming.read(at: body.count, into: $0) }
      #expect(last == ends)
      #expect(coming.isComplete == (ends == .end))
    }
  }
}
