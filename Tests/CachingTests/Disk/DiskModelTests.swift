// DiskModelTests: random operations on the disk tier and a naive model, across restarts and in
// parallel.

import Core
import TestSupport
import Testing

@testable import Caching

@Suite(.onOwnThreads) final class DiskModelTests: DiskFolderTests {
  private func openTier(limit: Int = 3 << 20) throws -> DiskTier {
    try open(limit: limit) { $0.promotionThreshold = 8_000 }
  }

  @Test(arguments: [11, 12])
  func `random operations and restarts return only the last stored entry`(seed: Int)
    async throws
  {
    var random = SeededGenerator(seed: UInt64(seed))
    var reference: [CacheKey: [UInt8]] = [:]
    var tier = try openTier()
    var found = 0
    for step in 0..<3_000 {
      let number = Int.random(in: 0..<40, using: &random)
      let isSource = Int.random(in: 0..<3, using: &random) == 0
      let key =
        isSource
        ? Sample.sourceKey(number)
        : Sample.variantKey(number, width: Int.random(in: 1...3, using: &random))
      switch Int.random(in: 0..<100, using: &random) {
      case 0..<40:
        let bytes = Sample.bytes(Int.random(in: 0..<30_000, using: &random), seed: step)
        reference[key] = bytes
        if isSource {
          tier.store(try Sample.source(number, bytes: bytes))
        } else {
          tier.store(Sample.variant(key, bytes: bytes))
        }
      case 40..<45:
        await tier.remove(key)
        reference[key] = nil
      case 45..<48:
        await tier.removeVariants(of: Sample.sourceKey(number))
        for width in 1...3 { reference[Sample.variantKey(number, width: width)] = nil }
      case 48:
        await tier.shutDown(within: .seconds(10))
        #expect(
          TemporaryFolder.diskUsage(of: folder.path + "/cache") <= 3 << 20)
        tier = try openTier()
      case 49:
        clock.advance(by: 1_000)
        await tier.clean()
      default:
        let bytes =
          isSource ? await tier.source(for: key)?.bytes : await tier.variant(for: key)?.bytes
        if let bytes {
          #expect(bytes == reference[key])
          found += 1
        }
      }
      #expect(tier.figures.bytes <= 3 << 20)
    }
    #expect(found > 300)
    #expect(tier.figures.damaged == 0)
    #expect(await tier.quiet())
    await tier.clean()
    // A replaced write releases its reservation a little later than its ticket.
    try await eventually {
      tier.figures.bytes == TemporaryFolder.diskUsage(of: folder.path + "/cache")
    }
  }

  @Test func `while the index is built, existing and new entries are found`() async throws {
    let first = try openTier(limit: 64 << 20)
    for number in 0..<300 {
      first.store(Sample.variant(number, bytes: Sample.bytes(500, seed: number)))
    }
    #expect(await first.shutDown(within: .seconds(10)))
    let second = try openTier(limit: 64 << 20)
    // Without waiting for the index.
    for number in 0..<300 {
      second.store(Sample.variant(1_000 + number, bytes: Sample.bytes(10)))
      #expect(
        await second.variant(for: Sample.variantKey(number))?.bytes
          == Sample.bytes(500, seed: number))
      #expect(await second.variant(for: Sample.variantKey(1_000 + number)) != nil)
    }
    #expect(await second.quiet())
    #expect(second.figures.entries == 600)
    #expect(second.figures.bytes == TemporaryFolder.diskUsage(of: folder.path + "/cache"))
  }

  @Test func `before the index is complete, look-ups read the disk and removals apply`()
    async throws
  {
    let first = try openTier()
    for number in 0..<4 { first.store(Sample.variant(number, bytes: Sample.bytes(500))) }
    #expect(await first.shutDown(within: .seconds(10)))

    // Given a store without an index.
    let configuration = Sample.configuration(folder)
    let store = DiskStore(
      folder: try DiskFolder(path: folder.path + "/cache"), configuration: configuration,
      log: .silent, clock: { .now })
    func read(_ number: Int) -> DiskEntry? {
      let key = Sample.variantKey(number)
      return store.read(key, digest: EntryDigest(of: key))
    }
    #expect(read(0) != nil)
    #expect(read(9) == nil)
    let ticket = PendingWrites.Ticket(removing: Sample.variantKey(1))
    _ = store.pending.add(ticket)
    store.write(ticket)
    #expect(read(1) == nil)
    // When it is indexed, then the removed entry is absent.
    store.scan { false }
    #expect(store.index.count == 3)
    #expect(store.space.bytes == TemporaryFolder.diskUsage(of: folder.path + "/cache"))
  }

  @Test func `concurrent stores, reads, removals and cleans return no wrong byte`()
    async throws
  {
    let tier = try openTier()
    await withTaskGroup(of: Void.self) { group in
      for task in 0..<8 {
        group.addTask { [clock] in
          var random = SeededGenerator(seed: UInt64(task))
          for step in 0..<150 {
            let number = Int.random(in: 0..<30, using: &random)
            switch Int.random(in: 0..<20, using: &random) {
            case 0..<8:
              // The tag records how the body was generated.
              let seed = task * 1_000 + step
              let bytes = Sample.bytes(Int.random(in: 1..<20_000, using: &random), seed: seed)
              tier.store(Sample.variant(number, bytes: bytes, etag: "\(seed)"))
            case 8: await tier.remove(Sample.variantKey(number))
            case 9: await tier.removeVariants(of: Sample.sourceKey(number))
            case 10:
              clock.advance(by: 10)
              await tier.clean()
            default:
              if let variant = await tier.variant(for: Sample.variantKey(number)) {
                let seed = Int(variant.info.etag.description) ?? -1
                #expect(variant.bytes == Sample.bytes(variant.body.count, seed: seed))
              }
            }
          }
        }
      }
    }
    #expect(await tier.quiet())
    await tier.clean()
    #expect(tier.figures.damaged == 0)
    // A replaced write releases its reservation a little later than its ticket.
    try await eventually {
      tier.figures.bytes == TemporaryFolder.diskUsage(of: folder.path + "/cache")
    }
  }
}
