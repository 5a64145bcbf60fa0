// EntryValidityTests: tests which variants are current after a source was replaced.

import Core
import Testing

@testable import Managing

struct EntryValidityTests {
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
    let changed = EntryValidity(purges: TestPurges())
    #expect(changed.isCurrent(variant(1, version: 7)))
    changed.recordChange(of: source(1), to: 8)
    #expect(!changed.isCurrent(variant(1, version: 7)))
    #expect(!changed.isCurrent(variant(1, version: 0)), "not known is not right")
    #expect(changed.isCurrent(variant(1, version: 8)))
    #expect(changed.isCurrent(variant(2, version: 7)))
    changed.recordChange(of: source(1), to: 9)
    #expect(!changed.isCurrent(variant(1, version: 8)))
  }

  @Test func `a load after an invalidation sets the current version`() {
    let changed = EntryValidity(purges: TestPurges())
    changed.recordLoad(of: source(1), version: 5)
    #expect(changed.isCurrent(variant(1, version: 4)), "nothing was replaced")
    changed.recordChange(of: source(1), to: 6)
    changed.recordLoad(of: source(1), version: 7)
    #expect(changed.isCurrent(variant(1, version: 7)) && !changed.isCurrent(variant(1, version: 6)))
  }

  @Test func `a repeated change of a source counts as its newest`() {
    let changed = EntryValidity(purges: TestPurges())
    let start = changed.loadStart(of: source(1))
    for number in 0..<EntryValidity.limit { changed.recordChange(of: source(number), to: 2) }
    changed.recordChange(of: source(0), to: 3)
    changed.recordChange(of: source(1), to: 3, isUpload: true)
    for number in 1...EntryValidity.limit / 2 {
      changed.recordChange(of: source(EntryValidity.limit + number), to: 2)
    }
    #expect(!changed.isCurrent(variant(0, version: 2)))
    #expect(
      !changed.isCurrent(variant(1, version: 2)) && changed.isUploaded(source(1), since: start))
    #expect(changed.isCurrent(variant(2, version: 1)), "it is the oldest now")
  }
}
