// DiskAdmissionTests: which free-form variants reach the disk, and how many of one source.

import Core
import TestSupport
import Testing

@testable import Caching

@Suite(.onOwnThreads) final class DiskAdmissionTests: DiskFolderTests {
  private var files: Int { TemporaryFolder.files(below: cache + "/v").count }

  private func variant(_ number: Int, width: Int, bytes: Int = 100) -> Variant {
    Sample.variant(Sample.variantKey(number, width: width), bytes: Sample.bytes(bytes))
  }

  @Test
  func `a free-form variant is written at its second request, a vouched one and a source at once`()
    async throws
  {
    // Given
    let tier = try open { $0.admission = .secondRequest }
    #expect(await tier.ready())
    // When
    #expect(tier.store(variant(1, width: 1), for: .first) == .deferred)
    #expect(tier.store(variant(1, width: 2), for: .vouched) == .stored)
    #expect(tier.store(variant(1, width: 3), for: .repeated) == .stored)
    #expect(tier.store(try Sample.source(1, bytes: Sample.bytes(100))))
    // Then
    #expect(await tier.quiet())
    #expect(await tier.variant(for: Sample.variantKey(1, width: 1)) == nil)
    #expect(files == 2)
    #expect(tier.figures.deferred == 1 && tier.figures.failures == 0)
    // When it is rendered again
    #expect(tier.store(variant(1, width: 1), for: .first) == .stored)
    #expect(await tier.quiet())
    #expect(files == 3)
    // Then each later one replaces it.
    #expect(tier.store(variant(1, width: 1, bytes: 200), for: .first) == .stored)
    #expect(await tier.variant(for: Sample.variantKey(1, width: 1))?.bytes.count == 200)
    #expect(await tier.quiet())
    #expect(tier.store(variant(1, width: 1, bytes: 300), for: .first) == .stored)
    #expect(tier.figures.deferred == 1)
  }

  @Test
  func `by default variants are written at once until the share is as full as a clean leaves it`()
    async throws
  {
    // Given a share of 40 files; a clean leaves 20
    let tier = try open {
      $0.countLimit = 80
      $0.variantsPerSource = 0
    }
    #expect(await tier.ready())
    // When
    var outcomes: [StoreOutcome] = []
    for number in 0..<60 {
      outcomes.append(tier.store(variant(number, width: 1), for: .first))
      #expect(await tier.quiet())
      clock.advance(by: 1)
    }
    // Then no clean had to evict anything.
    #expect(outcomes.prefix(20).allSatisfy { $0 == .stored })
    #expect(outcomes.dropFirst(21).allSatisfy { $0 == .deferred })
    await tier.clean()
    #expect(tier.figures.evictions == 0)
    // And what is asked for again is written.
    #expect(tier.store(variant(50, width: 1), for: .repeated) == .stored)
    #expect(tier.store(variant(59, width: 1), for: .first) == .stored)
    #expect(await tier.quiet())
    #expect(await tier.variant(for: Sample.variantKey(0, width: 1)) != nil)
  }

  @Test func `a thousand widths of one image, each once, do not evict what others use`()
    async throws
  {
    // Given a site's variants, used before the attack, in a share that they fill to a half
    let tier = try open {
      $0.countLimit = 200
      $0.sourceShare = 0.5
    }
    #expect(await tier.ready())
    for number in 0..<50 {
      #expect(tier.store(variant(number, width: 1), for: .repeated) == .stored)
    }
    #expect(await tier.quiet())
    clock.advance(by: 1_000)
    // When
    for width in 1...1_000 {
      _ = tier.store(variant(999, width: width), for: .first)
      #expect(await tier.quiet())
    }
    await tier.clean()
    // Then
    #expect(tier.figures.evictions == 0)
    for number in 0..<50 {
      #expect(await tier.variant(for: Sample.variantKey(number, width: 1)) != nil)
    }
  }

  @Test func `admission always writes every variant at once, as full as the share may be`()
    async throws
  {
    let tier = try open {
      $0.admission = .always
      $0.countLimit = 80
    }
    #expect(await tier.ready())
    for number in 0..<36 {
      #expect(tier.store(variant(number, width: 1), for: .first) == .stored)
      #expect(await tier.quiet())
    }
    #expect(files == 36)
  }

  @Test func `a source has at most so many free-form variants, and vouched ones do not count`()
    async throws
  {
    let tier = try open { $0.variantsPerSource = 8 }
    #expect(await tier.ready())
    for width in 1...5 { tier.store(variant(1, width: width)) }
    for width in 1_001...1_100 {
      #expect(tier.store(variant(1, width: width), for: .repeated) == .stored)
      #expect(await tier.quiet())
      #expect(files <= 13)
    }
    // The vouched ones, and the last eight.
    #expect(files == 13)
    #expect(tier.figures.displaced == 92)
    for width in Array(1...5) + Array(1_093...1_100) {
      #expect(await tier.variant(for: Sample.variantKey(1, width: width)) != nil)
    }
    // Another source has room of its own.
    for width in 1...8 { _ = tier.store(variant(2, width: width), for: .repeated) }
    #expect(await tier.quiet())
    #expect(files == 21 && tier.figures.displaced == 92)
    #expect(tier.figures.variants.entries == 21)
  }

  @Test func `a free-form variant that is vouched for later stays`() async throws {
    let tier = try open { $0.variantsPerSource = 2 }
    #expect(await tier.ready())
    for (width, demand) in [
      (1, VariantDemand.repeated), (1, .vouched), (2, .first), (3, .first), (4, .first),
    ] {
      #expect(tier.store(variant(1, width: width), for: demand) == .stored)
      #expect(await tier.quiet())
    }
    #expect(await tier.variant(for: Sample.variantKey(1, width: 1)) != nil)
    #expect(await tier.variant(for: Sample.variantKey(1, width: 2)) == nil)
  }

  @Test func `a replacement is stored at once and keeps the place of its variant`() async throws {
    let tier = try open { $0.variantsPerSource = 2 }
    #expect(await tier.ready())
    for (width, demand) in [
      (1, VariantDemand.vouched), (1, .replacement), (2, .repeated), (3, .repeated),
      (2, .replacement), (4, .repeated),
    ] {
      #expect(tier.store(variant(1, width: width), for: demand) == .stored)
      #expect(await tier.quiet())
    }
    // The vouched one does not count, and of the others the one stored first gave way.
    for (width, isStored) in [(1, true), (2, false), (3, true), (4, true)] {
      let found = await tier.variant(for: Sample.variantKey(1, width: width))
      #expect((found != nil) == isStored, "\(width)")
    }
  }

  @Test func `without a limit a source has any number`() async throws {
    let tier = try open { $0.variantsPerSource = 0 }
    for width in 1...100 { _ = tier.store(variant(1, width: width), for: .repeated) }
    #expect(await tier.quiet())
    #expect(files == 100)
  }

  @Test func `a disabled tier refuses`() async throws {
    let tier = try open(limit: 0)
    for demand in [VariantDemand.first, .repeated, .vouched] {
      #expect(tier.store(variant(1, width: 1), for: demand) == .refused)
    }
  }
}
