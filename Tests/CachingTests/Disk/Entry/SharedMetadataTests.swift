// SharedMetadataTests: entries of other machines are read within this machine's bounds.

import Core
import Testing

@testable import Caching

@Suite struct SharedMetadataTests {
  private let key: CacheKey
  private let future = Freshness(
    receivedAt: UnixTime(seconds: UnixTime.now.seconds + 1_000_000), lifetime: 4_000_000_000,
    staleWhileRevalidate: 4_000_000_000, staleIfError: 4_000_000_000)

  init() throws {
    key = CacheKey(source: try SourceURL(parsing: "http://h/a.png"), transform: Transform())
  }

  private func decode(etagOf bytes: Int) -> Variant? {
    let image = RenderedImage(
      format: .png, size: PixelSize(width: 1, height: 1), frames: 1, density: 1)
    let info = VariantInfo(
      .image(image), etag: EntityTag("\"" + String(repeating: "e", count: bytes - 2) + "\""),
      freshness: future)
    let body: [UInt8] = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 13]
    let variant = Variant(
      key: key, info: info,
      body: .memory(body.withUnsafeBytes { ImageBytes(copying: $0) }))
    let coding = StoredVariantCoding(memory: .unlimited, longestLifetime: 600)
    return coding.encode(variant)?.withUnsafeBytes {
      coding.decode($0, as: key, generation: 0)
    }
  }

  @Test func `a variant's entity tag has at most 256 bytes, and its times are no later than now`()
    throws
  {
    #expect(decode(etagOf: 257) == nil)
    let found = try #require(decode(etagOf: 256)).info.freshness
    #expect(found.lifetime == 600 && found.clientLifetime == 600)
    #expect(found.receivedAt <= .now)
    #expect(found.staleIfError <= 10 * 365 * 86_400)
    #expect(found.staleWhileRevalidate <= 10 * 365 * 86_400)
  }

  @Test func `a source's long entity tag is left out, and its lifetime is bounded`() throws {
    var origin = OriginResponse(status: 200)
    origin.etag = "\"" + String(repeating: "e", count: 255) + "\""
    let metadata = EntryMetadata(
      key: key.source.text, content: .source(origin, future, version: 1, generation: 0))
    let bounded = try #require(metadata.bounded(to: 600, at: .now))
    guard case .source(let found, let freshness, _, _) = bounded.content else {
      Issue.record("no source")
      return
    }
    #expect(found.etag == nil && freshness.lifetime == 600 && freshness.receivedAt <= .now)
  }
}
