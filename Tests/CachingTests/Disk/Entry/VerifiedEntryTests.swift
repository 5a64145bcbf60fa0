// VerifiedEntryTests: an unchanged file is verified once, and a changed one again.

import Core
import Glibc
import TestSupport
import Testing

@testable import Caching

@Suite(.onOwnThreads) final class VerifiedEntryTests: DiskFolderTests {
  /// How an entry is read.
  enum Reading: CaseIterable, CustomTestStringConvertible {
    /// On an event loop, into memory.
    case atOnce
    /// On a disk thread, into memory.
    case intoMemory
    /// On a disk thread, as a file that is sent.
    case fromFile

    var testDescription: String { "\(self)" }
  }

  private func openTier(_ reading: Reading) async throws -> DiskTier {
    let tier = try open { if reading == .fromFile { $0.promotionThreshold = 100 } }
    #expect(await tier.ready())
    return tier
  }

  private func read(_ key: CacheKey, in tier: DiskTier, _ reading: Reading) async -> Variant? {
    guard reading == .atOnce else { return await tier.variant(for: key) }
    // The kernel may decline a read that another one disturbs.
    for _ in 0..<20 {
      if let found = tier.variantAtOnce(for: key, where: { _ in true }) { return found }
    }
    return nil
  }

  private func verified(_ key: CacheKey, in tier: DiskTier) -> UInt32 {
    guard let parts = tier.parts,
      case .present(let record) = parts.store.index.lookUp(EntryDigest(of: key))
    else { return 0 }
    return record.verified
  }

  /// Makes the tier believe that it has verified the file in its present state. Only a read that
  /// trusts this finds damaged bytes.
  private func trust(_ key: CacheKey, in tier: DiskTier) {
    let descriptor = Glibc.open(tier.path(of: key), O_RDONLY)
    defer { close(descriptor) }
    let fingerprint = FileStamp(of: descriptor)?.fingerprint ?? 0
    #expect(fingerprint != 0)
    tier.parts?.store.index.update(EntryDigest(of: key)) {
      $0.verified = fingerprint
      // The next read does not set the access time, which would change the state.
      $0.times.access = clock.now
    }
  }

  /// Flips a bit of the body in place. `keepsTime`: sets the old modification time again, as a
  /// program does that hides its change.
  private func damage(_ key: CacheKey, in tier: DiskTier, keepsTime: Bool = false) {
    Self.damage(tier.path(of: key), keepsTime: keepsTime)
  }

  private static func damage(_ path: String, keepsTime: Bool = false) {
    let descriptor = Glibc.open(path, O_RDWR)
    defer { close(descriptor) }
    var status = stat()
    fstat(descriptor, &status)
    var byte: UInt8 = 0
    pread(descriptor, &byte, 1, status.st_size - 3)
    byte ^= 0x10
    pwrite(descriptor, &byte, 1, status.st_size - 3)
    guard keepsTime else { return }
    // A coarse clock may stand still between the entry's last change and this one.
    let isChanged = (0..<1_000_000).contains { _ in
      let times = [status.st_atim, status.st_mtim]
      futimens(descriptor, times)
      var now = stat()
      fstat(descriptor, &now)
      return now.st_ctim.tv_sec != status.st_ctim.tv_sec
        || now.st_ctim.tv_nsec != status.st_ctim.tv_nsec
    }
    #expect(isChanged)
  }

  private let variant = Sample.variant(1, bytes: Sample.bytes(5_000))

  @Test(.enabled(if: systemReadsAtOnce), arguments: Reading.allCases)
  func `a body is not verified again while its file is unchanged`(_ reading: Reading) async throws {
    // Given
    let tier = try await openTier(reading)
    await tier.keep(variant)
    #expect(await read(variant.key, in: tier, reading)?.bytes == variant.bytes)
    let first = verified(variant.key, in: tier)
    #expect(first != 0)
    #expect(await read(variant.key, in: tier, reading)?.bytes == variant.bytes)
    #expect(verified(variant.key, in: tier) == first)

    // When the bytes change without a trace
    damage(variant.key, in: tier)
    trust(variant.key, in: tier)

    // Then they are sent: no read looks at them
    let found = try #require(await read(variant.key, in: tier, reading))
    #expect(found.bytes != variant.bytes)
  }

  @Test(.enabled(if: systemReadsAtOnce), arguments: Reading.allCases, [false, true])
  func `a file that was changed in place after its verification is not served`(
    _ reading: Reading, keepsTime: Bool
  ) async throws {
    let tier = try await openTier(reading)
    await tier.keep(variant)
    #expect(await read(variant.key, in: tier, reading) != nil)
    #expect(verified(variant.key, in: tier) != 0)

    damage(variant.key, in: tier, keepsTime: keepsTime)

    #expect(await read(variant.key, in: tier, reading) == nil)
    #expect(await tier.variant(for: variant.key) == nil)
    #expect(tier.figures.damaged == 1)
  }

  @Test(.enabled(if: systemReadsAtOnce))
  func `another file in place of a verified one is verified`() async throws {
    // Given
    let tier = try await openTier(.atOnce)
    let other = Sample.variant(2, bytes: Sample.bytes(5_000, seed: 9))
    tier.store(variant)
    await tier.keep(other)
    #expect(tier.variantAtOnce(for: variant.key) { _ in true } != nil)
    #expect(tier.variantAtOnce(for: other.key) { _ in true } != nil)

    // When a file of the same size replaces it
    damage(other.key, in: tier)
    rename(tier.path(of: other.key), tier.path(of: variant.key))

    // Then
    #expect(tier.variantAtOnce(for: variant.key) { _ in true } == nil)
    #expect(await tier.variant(for: variant.key) == nil)
  }

  @Test(.enabled(if: systemReadsAtOnce))
  func `an entry that is replaced, purged or removed is never served from an earlier verification`()
    async throws
  {
    let tier = try await openTier(.atOnce)
    for (number, bytes) in [Sample.bytes(700), Sample.bytes(700, seed: 1)].enumerated() {
      await tier.keep(Sample.variant(variant.key, bytes: bytes, etag: "\"\(number)\""))
      for _ in 0..<2 {
        #expect(tier.variantAtOnce(for: variant.key) { _ in true }?.bytes == bytes)
      }
    }
    await tier.remove(variant.key)
    #expect(tier.variantAtOnce(for: variant.key) { _ in true } == nil)
  }

  @Test(.enabled(if: systemReadsAtOnce))
  func `many threads read one entry while it is replaced and its file damaged`() async throws {
    // Given: two versions, each of one repeated byte
    let tier = try await openTier(.atOnce)
    let key = variant.key
    let versions = (1...2).map { number in
      Sample.variant(
        key, bytes: [UInt8](repeating: UInt8(number), count: 3_000), etag: "\"\(number)\"")
    }
    await tier.keep(versions[0])

    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<4 {
        group.addTask {
          for _ in 0..<300 {
            guard let found = tier.variantAtOnce(for: key, where: { _ in true }) else { continue }
            // Then: each answer is one of them, whole
            let bytes = found.bytes
            #expect(bytes.count == 3_000 && Set(bytes).count == 1)
            #expect(found.info.etag == "\"\(bytes[0])\"")
          }
        }
      }
      let path = tier.path(of: key)
      group.addTask {
        for round in 0..<40 {
          tier.store(versions[round % 2])
          _ = await tier.quiet()
          if round % 4 == 3 { Self.damage(path) }
        }
      }
    }
  }

  @Test(.enabled(if: systemReadsAtOnce))
  func `a folder that was deleted and created again is read at once`() async throws {
    let tier = try await openTier(.atOnce)
    await tier.keep(variant)
    #expect(tier.variantAtOnce(for: variant.key) { _ in true } != nil)
    rename(cache, cache + "-away")
    #expect(await tier.variant(for: variant.key) == nil)
    await tier.keep(variant)
    #expect(tier.variantAtOnce(for: variant.key) { _ in true }?.bytes == variant.bytes)
  }
}
