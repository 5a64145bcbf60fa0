// FallbackFormatStepTests: tests which misses get a faster format before their AVIF.

import Model
import TestSupport
import Testing

@testable import Managing

struct FallbackFormatStepTests {
  private let step = FallbackFormatStep(policy: AVIFPolicy())

  @Test func `an AVIF that is not cached is replaced before its source is loaded`() async throws {
    var miss = try Miss.sample(accepting: [.avif, .webp])
    let fallback = try await step.run(&miss).fallback
    #expect(fallback?.transform.accepted == [.webp])
    #expect(fallback?.key != miss.request.key)
  }

  @Test func `a stale AVIF is replaced only if its source has changed`() async throws {
    // Given
    var miss = try Miss.sample(accepting: [.avif, .webp])
    miss.inMemory = miss.variant(version: 1)
    // When the source is not loaded yet, then it may renew the variant
    #expect(try await step.run(&miss).isNext)
    // When the source has not changed
    miss.loaded = LoadedSource(cached: miss.source(version: 1))
    #expect(try await step.run(&miss).isNext)
    // When it has changed
    miss.loaded = LoadedSource(cached: miss.source(version: 2))
    #expect(try await step.run(&miss).fallback != nil)
  }

  @Test func `a variant in a file is not renewed, so it is replaced`() async throws {
    var miss = try Miss.sample(accepting: [.avif, .webp])
    miss.onDisk = miss.variant(version: 1, inFile: true)
    miss.loaded = LoadedSource(cached: miss.source(version: 1))
    #expect(try await step.run(&miss).fallback != nil)
  }

  @Test func `a variant that cannot be renewed is replaced, whatever forbids its renewal`()
    async throws
  {
    // Given a damaged variant of the same source
    var damaged = try Miss.sample(accepting: [.avif, .webp])
    damaged.inMemory = damaged.variant(version: 1, isDamaged: true)
    damaged.loaded = LoadedSource(cached: damaged.source(version: 1))
    // Then
    #expect(try await step.run(&damaged).fallback != nil)
    // Given a variant with another watermark
    var marked = try Miss.sample(accepting: [.avif, .webp])
    marked.inMemory = marked.variant(version: 1)
    marked.loaded = LoadedSource(cached: marked.source(version: 1))
    marked.watermark = marked.source(version: 7)
    // Then
    #expect(try await step.run(&marked).fallback != nil)
  }

  @Test func `a source that may not be stored is rendered as an AVIF`() async throws {
    var miss = try Miss.sample(accepting: [.avif, .webp])
    miss.loaded = LoadedSource(cached: miss.source(version: 1, isStorable: false))
    #expect(try await step.run(&miss).isNext)
  }

  @Test func `requests that do not negotiate AVIF have no fallback`() async throws {
    var others = [try Miss.sample(), try Miss.sample(accepting: [.webp])]
    others.append(try .sample(accepting: [.avif, .webp]) { $0.awaitsAVIF = true })
    others.append(try .sample(accepting: [.avif, .webp]) { $0.isRevalidation = true })
    others.append(try .sample(accepting: [.avif, .webp]) { $0.store = .memory })
    for var miss in others { #expect(try await step.run(&miss).isNext) }
    // And
    var settings = ImagingSettings()
    settings.defersAVIF = false
    let policy = AVIFPolicy(settings)
    var miss = try Miss.sample(accepting: [.avif, .webp])
    #expect(try await FallbackFormatStep(policy: policy).run(&miss).isNext)
  }
}
