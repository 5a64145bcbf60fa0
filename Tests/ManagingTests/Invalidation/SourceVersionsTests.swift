// SourceVersionsTests: tests which variants are current after a source was replaced.

import Model
import Platform
import Testing

@testable import Managing

struct SourceVersionsTests {
  private func variant(_ number: Int, version: UInt64) -> Variant {
    let info = VariantInfo(
      .image(
        RenderedImage(format: .jpeg, size: PixelSize(width: 1, height: 1), density: 1)),
      etag: "\"1\"",
      freshness: Freshness(receivedAt: UnixTime(seconds: 0), lifetime: 1), sourceVersion: version)
    let bytes = [UInt8](repeating: 0, count: 1).withUnsafeBytes { ImageBytes(copying: $0) }
    return Variant(key: CacheKey(text: "http://a/\(number) w=1"), info: info, body: .memory(bytes))
  }

  private func source(_ number: Int) -> CacheKey { CacheKey(text: "http://a/\(number)") }

  @Test func `only variants of the current source version are allowed`() {
    let changed = SourceVersions()
    #expect(changed.allows(variant(1, version: 7)))
    changed.change(source(1), to: 8)
    #expect(!changed.allows(variant(1, version: 7)))
    #expect(!changed.allows(variant(1, version: 0)), "not known is not right")
    #expect(changed.allows(variant(1, version: 8)))
    #expect(changed.allows(variant(2, version: 7)))
    changed.change(source(1), to: 9)
    #expect(!changed.allows(variant(1, version: 8)))
  }

  @Test func `a load after an invalidation sets the current version`() {
    let changed = SourceVersions()
    changed.load(source(1), version: 5)
    #expect(changed.allows(variant(1, version: 4)), "nothing was replaced")
    changed.change(source(1), to: 6)
    changed.load(source(1), version: 7)
    #expect(changed.allows(variant(1, version: 7)) && !changed.allows(variant(1, version: 6)))
  }

  @Test func `beyond the limit the oldest changes are forgotten`() {
    let changed = SourceVersions()
    for number in 0..<SourceVersions.limit + 10 { changed.change(source(number), to: 2) }
    #expect(changed.allows(variant(9, version: 1)))
    #expect(!changed.allows(variant(10, version: 1)))
    #expect(!changed.allows(variant(SourceVersions.limit + 9, version: 1)))
  }

  @Test func `a repeated change of a source counts as its newest`() {
    let changed = SourceVersions()
    for number in 0..<SourceVersions.limit { changed.change(source(number), to: 2) }
    changed.change(source(0), to: 3)
    changed.change(source(1), to: 3, isPut: true)
    for number in 1...SourceVersions.limit / 2 {
      changed.change(source(SourceVersions.limit + number), to: 2)
    }
    #expect(!changed.allows(variant(0, version: 2)))
    #expect(!changed.allows(variant(1, version: 2)) && changed.isPut(source(1), since: 0))
    #expect(changed.allows(variant(2, version: 1)), "it is the oldest now")
  }

  @Test func `a source that changes repeatedly displaces no other`() {
    let changed = SourceVersions()
    changed.change(source(1), to: 2)
    for version in 0..<UInt64(2 * SourceVersions.limit) { changed.change(source(2), to: version) }
    #expect(!changed.allows(variant(1, version: 1)))
  }
}
