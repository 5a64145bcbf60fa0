// Content: entries whose content shows whether they are intact.

import Caching
import Core

/// The entries stored in a small and busy tier. Every body is generated from its key and a seed,
/// and the entry's ETag holds the seed.
enum Content {
  static let limit = 3 << 19
  static let countLimit = 120
  static let numbers = 0..<40
  static let widths = 1...3

  static func configuration(_ path: String) -> DiskTierConfiguration {
    var configuration = DiskTierConfiguration(path: path)
    configuration.limit = limit
    configuration.countLimit = countLimit
    configuration.sourceShare = 0.4
    configuration.promotionThreshold = 8_000
    configuration.writeQueueLimit = 1 << 20
    return configuration
  }

  static func sourceKey(_ number: Int) -> CacheKey {
    CacheKey(text: "https://images.example/\(number).jpg")
  }

  static func variantKey(_ number: Int, width: Int) -> CacheKey {
    CacheKey(text: sourceKey(number).text + " w=\(width)")
  }

  static func variant(_ key: CacheKey, seed: Int, generation: Int) -> Variant {
    let body = bytes(key, seed: seed).withUnsafeBytes { ImageBytes(copying: $0) }
    let info = VariantInfo(
      .image(RenderedImage(format: .webp, size: PixelSize(width: 3, height: 2), density: 1)),
      etag: EntityTag("\(seed)"),
      freshness: freshness(seed), generation: generation)
    return Variant(key: key, info: info, body: .memory(body))
  }

  static func source(_ key: CacheKey, seed: Int, generation: Int) throws -> Source {
    var file = try MemoryFile(name: "source")
    try bytes(key, seed: seed).withUnsafeBytes { try file.append($0) }
    var origin = OriginResponse(status: 200)
    origin.etag = "\(seed)"
    return Source(
      key: key, file: try file.sealed(), origin: origin, freshness: freshness(seed),
      version: UInt64(seed) + 1, generation: generation)
  }

  /// Returns the process that stored an entry with this seed. Each process has its own range of
  /// seeds.
  static func run(ofSeed seed: Int) -> Int { seed / seedsPerRun }

  static let seedsPerRun = 1_000_000

  /// Returns the path of a file beside the cache folder, which lists the completed purges. Each
  /// line has the run, the number and the prefix of the purged URLs.
  static func purgesFile(_ path: String) -> String { path + ".purged" }

  /// Returns whether the body and the metadata are those stored under `key`.
  static func isRight(_ variant: Variant, for key: CacheKey) -> Bool {
    guard let seed = Int(variant.info.etag.description), variant.key == key,
      variant.info.freshness == freshness(seed)
    else { return false }
    switch variant.body {
    case .memory(let bytes): return bytes.withUnsafeBytes { isRight($0, for: key, seed: seed) }
    case .file(let file): return isRight(file, for: key, seed: seed)
    }
  }

  /// Returns whether the body and the metadata are those stored under `key`.
  static func isRight(_ source: Source, for key: CacheKey) -> Bool {
    guard let tag = source.origin.etag, let seed = Int(tag), source.key == key,
      source.freshness == freshness(seed), source.version == UInt64(seed) + 1
    else { return false }
    return isRight(source.file, for: key, seed: seed)
  }

  private static func isRight(_ file: FileRegion, for key: CacheKey, seed: Int) -> Bool {
    guard let bytes = try? ImageBytes(contentsOf: file, mayMap: false) else { return false }
    return bytes.withUnsafeBytes { isRight($0, for: key, seed: seed) }
  }

  private static func isRight(
    _ found: UnsafeRawBufferPointer, for key: CacheKey, seed: Int
  ) -> Bool {
    bytes(key, seed: seed).withUnsafeBytes { $0.elementsEqual(found) }
  }

  private static func freshness(_ seed: Int) -> Freshness {
    Freshness(receivedAt: UnixTime(seconds: 1_700_000_000 + seed), lifetime: 604_800)
  }

  /// Generates up to 48 KiB; most bodies are far shorter.
  private static func bytes(_ key: CacheKey, seed: Int) -> [UInt8] {
    var chance = Chance(seed: key.text.utf8.reduce(UInt64(seed)) { $0 &* 31 &+ UInt64($1) })
    let longest = Int.random(in: 0..<8, using: &chance) == 0 ? 48 << 10 : 6 << 10
    let count = Int.random(in: 0..<longest, using: &chance)
    let first = chance.next()
    var bytes = [UInt8](repeating: 0, count: count)
    bytes.withUnsafeMutableBytes { buffer in
      for position in stride(from: 0, to: count - 7, by: 8) {
        buffer.storeBytes(
          of: first &* UInt64(position + 1), toByteOffset: position, as: UInt64.self)
      }
    }
    return bytes
  }
}

/// Knuth's linear congruential generator. TestSupport has a better one but links libvips, and
/// loading it takes longer than all work of this process.
struct Chance: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64) { state = seed &* 2 &+ 1 }

  mutating func next() -> UInt64 {
    state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
    // The low bits repeat after a short period.
    return state >> 32 | state << 32
  }
}
