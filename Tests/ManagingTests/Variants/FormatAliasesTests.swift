// FormatAliasesTests: tests storing negotiated variants under their explicit format.

import Core
import TestSupport
import Testing

@testable import Managing

final class FormatAliasesTests: ManagedTests {
  @Test func `a storable variant is also stored under its explicit format`()
    async throws
  {
    openAll()
    let request = try request()
    let made = try await manager.variant(for: request).variant
    let named = request.naming(try #require(made.info.image).format)
    await manager.keepNamed(made, of: request)
    let kept = try #require(manager.cachedVariant(for: named.key))
    #expect(kept.key == named.key && kept.info == made.info)
    #expect(await disk.variant(for: named.key) === kept)
    // And
    var info = made.info
    info.content = .image(
      RenderedImage(format: .tiff, size: PixelSize(width: 1, height: 1), density: 1))
    info.freshness = Freshness(receivedAt: .now, lifetime: 60, isStorable: false)
    await manager.keepNamed(
      Variant(key: request.key, info: info, body: made.body), of: request)
    #expect(memory.peek(request.naming(.tiff).key) == nil)
  }

  @Test func `an existing alias is kept until it is stale`() async throws {
    openAll()
    let request = try request()
    let made = try await manager.variant(for: request).variant
    let named = request.naming(try #require(made.info.image).format)
    await manager.keepNamed(made, of: request)
    let kept = memory.peek(named.key)
    // The variant is in memory, then on disk only.
    await manager.keepNamed(made, of: request)
    #expect(memory.peek(named.key) === kept)
    memory.remove(named.key)
    await manager.keepNamed(made, of: request)
    #expect(memory.peek(named.key) == nil)
    pass(seconds: 3_600)
    let renewed = try await manager.variant(for: request).variant
    await manager.keepNamed(renewed, of: request)
    #expect(memory.peek(named.key)?.info == renewed.info)
  }

  @Test func `a fallback is stored under its own format with its full lifetime`() async throws {
    openAll()
    processor.avifGate.withLock { $0 = Gate() }
    processor.result.withLock { $0 = { _ in TestProcessor.image(bytes: 100, format: .webp) } }
    let wish = try request().accepting([.avif, .webp])
    let quick = try await manager.variant(for: wish).variant
    #expect(quick.info.freshness.lifetime == DeferredAVIF.placeholderLifetime)
    await manager.keepNamed(quick, of: wish)
    let kept = try #require(manager.cachedVariant(for: wish.naming(.webp).key))
    #expect(kept.info.freshness.lifetime == 3_600)
  }
}
