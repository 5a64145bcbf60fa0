// MemoryCosts: what an entry of the memory tier takes beside its body and its key.

import Caching
import Core

/// The memory tier with so many entries.
struct MemoryCost: Encodable {
  let entries: Int
  /// Bytes that malloc handed out for an entry, without the bytes of its body and its key.
  let overhead: Double
}

enum MemoryCosts {
  private static let body = 1_000

  /// Fills a tier without a limit that matters. In a process of its own, where nothing else allocates or frees.
  static func measure(count: Int) -> MemoryCost {
    var configuration = MemoryTierConfiguration()
    configuration.limit = 1 << 40
    configuration.countLimit = nil
    let tier = MemoryTier(configuration)
    let before = DiskCosts.allocated
    var keys = 0
    for number in 0..<count {
      let variant = variant(number)
      keys += variant.key.text.utf8.count
      guard tier.store(variant) else { CacheBenchmark.fail("the tier does not keep \(number)") }
    }
    let all = DiskCosts.allocated - before
    guard tier.figures.entries.whole == count else {
      CacheBenchmark.fail("\(tier.figures.entries.whole) entries instead of \(count)")
    }
    return MemoryCost(
      entries: count, overhead: Double(all - keys - count * body) / Double(count))
  }

  /// A variant as the server makes it, of an origin with `Last-Modified`.
  private static func variant(_ number: Int) -> Variant {
    let bytes = [UInt8](repeating: 0x5a, count: body).withUnsafeBytes { ImageBytes(copying: $0) }
    let digest = String(number, radix: 16)
    let etag = "\"" + String(repeating: "0", count: 32 - digest.count) + digest + "\""
    let info = VariantInfo(
      .image(RenderedImage(format: .jpeg, size: PixelSize(width: 300, height: 200), density: 1)),
      etag: EntityTag(etag), lastModified: UnixTime(seconds: 1_700_000_000 + number),
      freshness: Freshness(receivedAt: .now, lifetime: 604_800))
    return Variant(key: DiskFilling.key(number), info: info, body: .memory(bytes))
  }
}
