// DiskFilling: a folder with many entries, written by the disk tier itself.

import Caching
import Core

/// What filling a folder took.
struct DiskFill: Encodable {
  /// Microseconds from the first of the last thousand stores to all of them written, each.
  let store: Double
  /// Seconds for all that was missing.
  let seconds: Double
}

enum DiskFilling {
  /// How many stores are measured, after all others.
  static let stores = 1_000
  /// A small image: with header and metadata it takes a block of 4 KiB.
  private static let body = [UInt8](repeating: 0x5a, count: 1_000)

  /// Fills the folder up to `count` entries, of which there are `stores` less at most.
  static func fill(_ folder: String, upTo count: Int) async throws -> DiskFill {
    let start = ContinuousClock.now
    let tier = try open(folder)
    while !tier.isIndexed { try await Task.sleep(for: .milliseconds(1)) }
    let there = tier.figures.entries.whole
    guard there <= count - stores else { CacheBenchmark.fail("\(there) entries are there already") }
    let body = self.body.withUnsafeBytes { ImageBytes(copying: $0) }
    try await store(there..<(count - stores), body, in: tier)
    let filled = ContinuousClock.now
    try await store((count - stores)..<count, body, in: tier)
    let end = ContinuousClock.now
    guard await tier.shutDown(within: .seconds(60)) else {
      CacheBenchmark.fail("not all is written")
    }
    return DiskFill(
      store: filled.duration(to: end).inSeconds * 1e6 / Double(stores),
      seconds: start.duration(to: end).inSeconds)
  }

  /// The tier, without a limit that matters.
  static func open(_ folder: String) throws -> DiskTier {
    var configuration = DiskTierConfiguration(path: folder)
    configuration.limit = 1 << 40
    configuration.countLimit = 0
    return try DiskTier(configuration, log: Log(level: .warning))
  }

  /// The key of an entry.
  static func key(_ number: Int) -> CacheKey {
    CacheKey(text: "https://origin.example/\(number)/image.jpg w=300")
  }

  /// Stores, and returns when all is written.
  private static func store(
    _ numbers: Range<Int>, _ body: ImageBytes, in tier: DiskTier
  ) async throws {
    for number in numbers {
      let info = VariantInfo(
        .image(RenderedImage(format: .jpeg, size: PixelSize(width: 1, height: 1), density: 1)),
        etag: EntityTag("\"\(number)\""),
        freshness: Freshness(receivedAt: .now, lifetime: 604_800))
      while tier.pendingBytes > 16 << 20 { try await Task.sleep(for: .milliseconds(1)) }
      let variant = Variant(key: DiskFilling.key(number), info: info, body: .memory(body))
      guard tier.store(variant) else { CacheBenchmark.fail("the tier does not keep \(number)") }
    }
    while tier.pendingBytes > 0 { try await Task.sleep(for: .microseconds(200)) }
  }
}
