// Samples: entries shared by the tests of the tiers.

import Core
import Glibc
import TestSupport
import Testing

@testable import Caching

enum Sample {
  static func sourceKey(_ number: Int) -> CacheKey {
    CacheKey(text: "https://images.example/\(number).jpg")
  }

  static func variantKey(_ number: Int) -> CacheKey {
    variantKey(number, width: number % 7 + 1)
  }

  static func variantKey(_ number: Int, width: Int) -> CacheKey {
    CacheKey(text: sourceKey(number).text + " w=\(width)")
  }

  static func bytes(_ count: Int, seed: Int = 0) -> [UInt8] {
    var bytes = [UInt8](repeating: UInt8(truncatingIfNeeded: seed), count: count)
    for position in stride(from: 0, to: count, by: 251) {
      bytes[position] = UInt8(truncatingIfNeeded: position &* 31 &+ seed >> 8)
    }
    return bytes
  }

  static func body(_ bytes: [UInt8]) -> ImageBytes {
    bytes.withUnsafeBytes { ImageBytes(copying: $0) }
  }

  static let freshness = Freshness(
    receivedAt: UnixTime(seconds: 1_699_999_990), initialAge: 5, lifetime: 604_800)

  static func info(etag: EntityTag = "\"0123456789abcdef0123456789abcdef\"") -> VariantInfo {
    VariantInfo(
      .image(
        RenderedImage(
          format: .webp, size: PixelSize(width: 320, height: 240), frames: 3, density: 1.5,
          scaledDownFrom: PixelSize(width: 5250, height: 3450), droppedFrames: 9)), etag: etag,
      lastModified: UnixTime(seconds: 784_111_777), freshness: freshness, sourceVersion: version)
  }

  /// A version with its highest bit set, as half of all random versions have.
  static let version: UInt64 = 0xfedc_ba98_7654_3210

  static func variant(_ number: Int, bytes: [UInt8], etag: EntityTag = "\"e\"") -> Variant {
    variant(variantKey(number), bytes: bytes, etag: etag)
  }

  static func variant(_ key: CacheKey, bytes: [UInt8], etag: EntityTag = "\"e\"") -> Variant {
    Variant(key: key, info: info(etag: etag), body: .memory(body(bytes)))
  }

  static var origin: OriginResponse {
    var origin = OriginResponse(status: 200)
    origin.contentType = "image/jpeg"
    origin.cacheControl = "max-age=60"
    origin.etag = "\"abc\""
    origin.lastModified = "Sun, 06 Nov 1994 08:49:37 GMT"
    return origin
  }

  /// Creates a source in an unnamed file, as downloads do. It starts some bytes into the file.
  static func source(_ number: Int, bytes: [UInt8]) throws -> Source {
    Source(
      key: sourceKey(number), file: try memoryFile(bytes), origin: origin, freshness: freshness)
  }

  static func memoryFile(_ bytes: [UInt8], offset: Int = 7) throws -> FileRegion {
    let whole = try FileRegion.sealed([UInt8](repeating: 0xff, count: offset) + bytes)
    return FileRegion(owning: dup(whole.descriptor), offset: offset, count: bytes.count)
  }

  static func configuration(_ folder: TemporaryFolder, limit: Int = 64 << 20)
    -> DiskTierConfiguration
  {
    var configuration = DiskTierConfiguration(path: folder.path + "/cache")
    configuration.limit = limit
    return configuration
  }
}

extension Variant {
  var bytes: [UInt8] {
    switch body {
    case .memory(let bytes): bytes.withUnsafeBytes { Array($0) }
    case .file(let region): region.bytes
    }
  }

  var isInMemory: Bool { if case .memory = body { true } else { false } }
}

extension Source { var bytes: [UInt8] { file.bytes } }

/// A folder for a disk tier, a test clock and a list of purges, new for each test.
class DiskFolderTests {
  let folder: TemporaryFolder
  let clock = ManualClock()
  let purges = Purges(filter: PurgesTests.filter)
  var cache: String { folder.path + "/cache" }
  private let opened = Lock<[DiskTier]>([])

  init() throws { folder = try TemporaryFolder() }

  deinit { for tier in opened.withLock({ $0 }) { _ = tier.parts?.shutDown(.seconds(10)) } }

  /// Opens a tier, which is shut down when the test has ended.
  func open(
    limit: Int = 64 << 20, purges: Purges? = nil, memory: ByteBudget = .unlimited,
    log: Log = .silent, _ change: (inout DiskTierConfiguration) -> Void = { _ in }
  ) throws -> DiskTier {
    var configuration = Sample.configuration(folder, limit: limit)
    change(&configuration)
    let tier = try DiskTier(
      configuration, purges: purges ?? self.purges, memory: memory, log: log
    ) { [clock] in clock.now }
    opened.withLock { $0.append(tier) }
    return tier
  }

  /// The number of files of variants and of sources.
  func entryCount() -> Int { fileCount("v") + fileCount("s") }

  /// The number of files below one folder of the cache.
  func fileCount(_ name: String) -> Int {
    TemporaryFolder.files(below: "\(cache)/\(name)").count
  }
}

extension DiskTier {
  /// Waits until the index is complete.
  func ready() async -> Bool { await becomesTrue { self.isIndexed } }
  /// Waits until no write is pending.
  func quiet() async -> Bool { await becomesTrue { self.isIndexed && self.pendingBytes == 0 } }

  /// Stores a variant and waits until it is written.
  func keep(_ variant: Variant, sourceLocation: SourceLocation = #_sourceLocation) async {
    store(variant)
    #expect(await quiet(), sourceLocation: sourceLocation)
  }
}

extension DiskStore {
  /// Writes an entry, as a disk thread does.
  func put(_ entry: DiskEntry) {
    let ticket = PendingWrites.Ticket(storing: entry)
    _ = pending.add(ticket)
    write(ticket)
  }
}

extension DiskEngine {
  /// Removes the variants of a source, and returns when that was tried.
  func removeVariants(of source: CacheKey) async {
    await withCheckedContinuation { continuation in
      remove(.variants(of: source)) { _ in continuation.resume() }
    }
  }
}

extension DiskTier {
  /// Returns the path of a key's file.
  func path(of key: CacheKey) -> String {
    parts?.store.folder.file(EntryKind(of: key), of: EntryDigest(of: key)) ?? ""
  }

  /// Makes the next read verify the body, as after a start.
  func unverify(_ digest: EntryDigest) {
    parts?.store.index.update(digest) { $0.verified = 0 }
  }
}

extension Sample {
  /// Returns a variant of a URL loaded after the purge with this number.
  static func variant(_ text: String, generation: Int, bytes: [UInt8] = bytes(100)) -> Variant {
    var info = info()
    info.generation = generation
    return Variant(key: CacheKey(text: text), info: info, body: .memory(body(bytes)))
  }

  /// Returns a source loaded after the purge with this number.
  static func source(_ text: String, generation: Int, bytes: [UInt8] = bytes(100)) throws
    -> Source
  {
    Source(
      key: CacheKey(text: text), file: try memoryFile(bytes), origin: origin,
      freshness: freshness, generation: generation)
  }
}

extension MemoryTier {
  /// Looks up a variant at a time when all samples are fresh, with counting.
  func variant(for key: CacheKey) -> Variant? {
    variant(for: key, freshAt: Sample.freshness.receivedAt)
  }
}
