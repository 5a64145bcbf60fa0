// HashCollisionTests: keys with the same hash in the memory tier.

import TestSupport
import Testing

@testable import Caching
@testable import Core

@Suite(.onOwnThreads) struct HashCollisionTests {
  private static func key(_ name: String, hash: Int = 42) -> CacheKey {
    CacheKey(text: "https://images.example/\(name).jpg w=1", hash: hash)
  }

  /// Two variants whose keys have the same hash.
  private let first = Sample.variant(key("1"), bytes: Sample.bytes(100))
  private let second = Sample.variant(key("2"), bytes: Sample.bytes(200))

  private func tier(limit: Int = 1 << 20, countLimit: Int? = nil) -> MemoryTier {
    var configuration = MemoryTierConfiguration()
    configuration.limit = limit
    configuration.countLimit = countLimit
    return MemoryTier(configuration)
  }

  @Test func `a key neither finds nor removes the variant of another key with its hash`() {
    let tier = tier()
    tier.store(first)
    #expect(tier.variant(for: second.key) == nil && tier.peek(second.key) == nil)
    var gone: [Variant] = []
    #expect(!tier.exchange(second, for: second, releasing: &gone))
    tier.remove(second.key)
    tier.removeVariants(of: second.key.source)
    #expect(tier.removeAll { $0.key == second.key } == 0)
    #expect(tier.variant(for: first.key) === first)
    #expect(tier.figures.hits == 1 && tier.figures.misses == 1 && tier.figures.entries == 1)
  }

  @Test(arguments: [nil, 1]) func `a new variant replaces that of another key with its hash`(
    countLimit: Int?
  ) {
    let tier = tier(countLimit: countLimit)
    #expect(tier.store(first) && tier.store(second))
    #expect(tier.peek(first.key) == nil && tier.peek(second.key) === second)
    #expect(tier.figures.entries == 1 && tier.figures.evictions == 1)
    #expect(tier.figures.bytes == MemoryTier.cost(of: second))
    tier.remove(first.key)
    #expect(tier.peek(second.key) === second)
    tier.remove(second.key)
    #expect(tier.figures.entries == 0 && tier.figures.bytes == 0)
  }

  @Test func `a variant without room leaves that of another key with its hash`() {
    let tier = tier()
    tier.store(first)
    #expect(!tier.store(Sample.variant(second.key, bytes: Sample.bytes(70_000))))
    #expect(tier.peek(first.key) === first)
  }

  @Test(arguments: [1, 2])
  func `random operations on keys with few hashes find only the last stored variant`(seed: Int) {
    var random = SeededGenerator(seed: UInt64(seed))
    let limit = 30_000
    let tier = tier(limit: limit)
    var reference: [CacheKey: Variant] = [:]
    var found = 0
    for _ in 0..<20_000 {
      let number = Int.random(in: 0..<20, using: &random)
      let key = Self.key("\(number)", hash: number % 7)
      switch Int.random(in: 0..<10, using: &random) {
      case 0..<4:
        let size = Int.random(in: 0..<500, using: &random)
        let variant = Sample.variant(key, bytes: Sample.bytes(size))
        tier.store(variant)
        reference[key] = variant
      case 4:
        tier.remove(key)
        reference[key] = nil
      default:
        guard let variant = tier.variant(for: key) else { continue }
        #expect(variant === reference[key])
        found += 1
      }
      #expect(tier.figures.entries <= 7 && tier.figures.bytes <= limit)
    }
    #expect(found > 1_000)
    for number in 0..<20 { tier.remove(Self.key("\(number)", hash: number % 7)) }
    #expect(tier.figures.entries == 0 && tier.figures.bytes == 0)
  }
}
