// RenewalStepTests: tests which cached variants take over the freshness of their source.

import Model
import Testing

@testable import Managing

struct RenewalStepTests {
  private func making(_ change: (inout Miss) -> Void) async throws -> NewVariant? {
    var miss = try Miss.sample()
    miss.loaded = LoadedSource(cached: miss.source(version: 1, lifetime: 600))
    change(&miss)
    #expect(try await RenewalStep().run(&miss).isNext)
    return miss.made
  }

  @Test func `a variant of the same source gets its freshness`() async throws {
    let made = try await making { $0.inMemory = $0.variant(version: 1) }
    #expect(made?.variant.info.freshness.lifetime == 600)
    guard case .renewed = made?.making else {
      Issue.record("not renewed")
      return
    }
  }

  @Test func `the watermark limits the freshness`() async throws {
    var info: VariantInfo?
    let made = try await making { miss in
      let old = miss.variant(version: 1)
      var marked = old.info
      marked.watermarkVersion = 7
      info = marked
      miss.inMemory = Variant(key: old.key, info: marked, body: old.body)
      miss.watermark = miss.source(version: 7, lifetime: 30)
    }
    #expect(info != nil && made?.variant.info.freshness.lifetime == 30)
  }

  @Test func `other variants are not renewed`() async throws {
    #expect(try await making { _ in } == nil)
    #expect(try await making { $0.inMemory = $0.variant(version: 2) } == nil)
    #expect(try await making { $0.inMemory = $0.variant(version: 1, isDamaged: true) } == nil)
    #expect(try await making { $0.onDisk = $0.variant(version: 1, inFile: true) } == nil)
    // And a changed watermark
    let made = try await making { miss in
      miss.inMemory = miss.variant(version: 1)
      miss.watermark = miss.source(version: 7)
    }
    #expect(made == nil)
  }

  @Test func `a variant in memory is renewed before a file on disk`() async throws {
    let made = try await making { miss in
      miss.onDisk = miss.variant(version: 1, inFile: true)
      miss.inMemory = miss.variant(version: 1)
    }
    #expect(made != nil)
  }
}
