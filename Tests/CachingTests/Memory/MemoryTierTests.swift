// MemoryTierTests: the memory tier's limit, its eviction order and its counters.

import Core
import TestSupport
import Testing

@testable import Caching

@Suite(.onOwnThreads) struct MemoryTierTests {
  func tier(limit: Int, countLimit: Int? = nil) -> MemoryTier {
    var configuration = MemoryTierConfiguration()
    configuration.limit = limit
    configuration.countLimit = countLimit
    return MemoryTier(configuration)
  }

  @Test func `purged variants are counted, and invalidated ones are not`() {
    let tier = MemoryTier()
    for number in 1...4 { #expect(tier.store(Sample.variant(number, bytes: [1]))) }
    tier.removeVariants(of: Sample.sourceKey(1))
    #expect(tier.figures.purged == 0)
    #expect(tier.removeAll { $0.key.source != Sample.sourceKey(2) } == 2)
    #expect(tier.figures.purged == 2)
    #expect(tier.figures.entries == 1)
  }

  @Test func `a stored variant is found and is the same object`() {
    let tier = tier(limit: 1 << 20)
    let variant = Sample.variant(1, bytes: Sample.bytes(100))
    tier.store(variant)
    #expect(tier.variant(for: variant.key) === variant)
    #expect(tier.variant(for: Sample.variantKey(2)) == nil)
    #expect(tier.figures.hits == 1)
    #expect(tier.figures.misses == 1)
    #expect(tier.figures.hitRatio == 0.5)
    #expect(tier.figures.bytes == MemoryTier.cost(of: variant))
  }

  @Test func `a variant is exchanged only for the one that is expected`() {
    let tier = tier(limit: 1 << 20)
    let first = Sample.variant(1, bytes: Sample.bytes(5_000))
    let smaller = Sample.variant(1, bytes: Sample.bytes(4_000))
    var gone: [Variant] = []
    #expect(!tier.exchange(first, for: smaller, releasing: &gone) && tier.figures.entries == 0)
    tier.store(first)
    #expect(
      tier.exchange(first, for: smaller, releasing: &gone) && tier.peek(first.key) === smaller)
    #expect(!tier.exchange(first, for: Sample.variant(1, bytes: [1]), releasing: &gone))
    #expect(tier.peek(first.key) === smaller && tier.figures.bytes == MemoryTier.cost(of: smaller))
    // One that has no room leaves the old one.
    #expect(
      !tier.exchange(smaller, for: Sample.variant(1, bytes: Sample.bytes(70_000)), releasing: &gone)
    )
    #expect(tier.peek(first.key) === smaller)
  }

  @Test func `one variant takes at most a sixteenth of the limit`() {
    let tier = tier(limit: 16 << 20)
    let large = Sample.variant(1, bytes: Sample.bytes(900_000))
    tier.store(large)
    #expect(tier.variant(for: large.key) != nil)
    // Too large: the entry is not kept, and the replaced one is removed.
    tier.store(Sample.variant(1, bytes: Sample.bytes(1 << 20)))
    #expect(tier.variant(for: large.key) == nil)
    #expect(tier.figures.bytes == 0)
    #expect(tier.figures.entries == 0)
  }

  @Test func `a limit of 0 or a count limit of 0 stores nothing`() {
    for tier in [tier(limit: 0), tier(limit: 1 << 20, countLimit: 0)] {
      tier.store(Sample.variant(1, bytes: []))
      #expect(tier.variant(for: Sample.variantKey(1)) == nil)
      #expect(tier.figures.entries == 0)
    }
  }

  @Test func `large variants evict only what they need`() {
    // Given a tier full of small variants
    let tier = tier(limit: 1 << 20)
    for number in 0..<1_000 { tier.store(Sample.variant(number, bytes: Sample.bytes(1_000))) }
    let before = tier.figures.entries
    // When variants as large as the tier and one of the maximum size are stored
    for number in 0..<3 {
      tier.store(Sample.variant(2_000 + number, bytes: Sample.bytes(1_000_000)))
    }
    tier.store(Sample.variant(3_000, bytes: Sample.bytes(60_000)))
    // Then
    #expect(before > 300)
    #expect(tier.figures.entries > before.whole * 7 / 8)
    #expect(tier.peek(Sample.variantKey(3_000)) != nil)
  }

  @Test func `a variant whose body is a file is not kept`() throws {
    let tier = tier(limit: 1 << 20)
    let file = try Sample.memoryFile(Sample.bytes(10))
    tier.store(Variant(key: Sample.variantKey(1), info: Sample.info(), body: .file(file)))
    #expect(tier.variant(for: Sample.variantKey(1)) == nil)
  }

  @Test func `frequently requested variants outlive those requested once`() {
    let tier = tier(limit: 200 * (1_000 + 1_200))
    let popular = (0..<20).map { Sample.variant($0, bytes: Sample.bytes(1_000)) }
    for variant in popular { tier.store(variant) }
    for number in 100..<5_000 {
      for variant in popular { _ = tier.variant(for: variant.key) }
      tier.store(Sample.variant(number, bytes: Sample.bytes(1_000)))
    }
    for variant in popular { #expect(tier.variant(for: variant.key) != nil) }
  }

  @Test func `a variant stored again keeps its position`() {
    let tier = tier(limit: 200 * 1_200)
    let popular = Sample.variantKey(1)
    for number in 0..<5_000 {
      // Sometimes it is stored again, as after a revalidation.
      if number.isMultiple(of: 500) { tier.store(Sample.variant(popular, bytes: [1])) }
      _ = tier.variant(for: popular)
      tier.store(Sample.variant(100 + number, bytes: []))
      #expect(tier.peek(popular) != nil)
    }
  }

  @Test(arguments: [1, 2, 3])
  func `random operations keep the limit and return only the last stored variant`(seed: Int) {
    var random = SeededGenerator(seed: UInt64(seed))
    let limit = 200_000
    let tier = tier(limit: limit, countLimit: seed == 2 ? 12 : nil)
    var reference: [CacheKey: Variant] = [:]
    var found = 0
    for step in 0..<20_000 {
      let number = Int.random(in: 0..<20, using: &random)
      let key = Sample.variantKey(number, width: Int.random(in: 1...3, using: &random))
      switch Int.random(in: 0..<20, using: &random) {
      case 0..<8:
        let size =
          Int.random(in: 0..<50, using: &random) == 0
          ? limit : Int.random(in: 0..<8_000, using: &random)
        let variant = Sample.variant(
          key, bytes: [UInt8](repeating: UInt8(step & 0xff), count: size))
        tier.store(variant)
        reference[key] = variant
      case 8:
        tier.remove(key)
        reference[key] = nil
      case 9:
        tier.removeVariants(of: Sample.sourceKey(number))
        for width in 1...3 { reference[Sample.variantKey(number, width: width)] = nil }
      default:
        if let variant = tier.variant(for: key) {
          #expect(variant === reference[variant.key])
          found += 1
        }
      }
      #expect(tier.figures.bytes <= limit)
      #expect(seed != 2 || tier.figures.entries <= 12)
    }
    #expect(found > 1_000)
    // After all sources are removed, the accounting is zero.
    for number in 0..<20 { tier.removeVariants(of: Sample.sourceKey(number)) }
    #expect(tier.figures.bytes == 0)
    #expect(tier.figures.entries == 0)
  }

  @Test func `a stale variant is not a hit, and a peek is not counted`() {
    // Given
    let tier = tier(limit: 1 << 20)
    let variant = Sample.variant(1, bytes: [1, 2, 3])
    tier.store(variant)
    let end = variant.info.freshness.receivedAt.seconds + variant.info.freshness.lifetime
    // When
    let fresh = tier.variant(for: variant.key, freshAt: variant.info.freshness.receivedAt)
    let stale = tier.variant(for: variant.key, freshAt: UnixTime(seconds: end))
    let peeked = tier.peek(variant.key)
    // Then
    #expect(fresh === variant && stale == nil && peeked === variant)
    #expect(tier.figures.hits == 1 && tier.figures.misses == 1)
  }

  @Test func `concurrent operations keep the accounted size exact`() async {
    let tier = tier(limit: 200_000)
    await withTaskGroup(of: Void.self) { group in
      for task in 0..<8 {
        group.addTask {
          var random = SeededGenerator(seed: UInt64(task))
          for _ in 0..<2_000 {
            let number = Int.random(in: 0..<100, using: &random)
            switch Int.random(in: 0..<4, using: &random) {
            case 0: tier.store(Sample.variant(number, bytes: [UInt8](repeating: 1, count: 4_000)))
            case 1 where number < 50: tier.remove(Sample.variantKey(number))
            case 1: tier.removeVariants(of: Sample.sourceKey(number))
            default:
              if let variant = tier.variant(for: Sample.variantKey(number)) {
                #expect(variant.key == Sample.variantKey(number))
              }
            }
            #expect(tier.figures.bytes <= 200_000)
          }
        }
      }
    }
    for number in 0..<100 { tier.remove(Sample.variantKey(number)) }
    #expect(tier.figures.bytes == 0)
    #expect(tier.figures.entries == 0)
  }
}
