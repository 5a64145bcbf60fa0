// RenewalTests: tests revalidations that meet changed bytes, purges and other requests.

import Core
import TestSupport
import Testing

@testable import Managing

final class RenewalTests: StaleTests {
  @Test func `a late 304 does not restore bytes that were replaced meanwhile`()
    async throws
  {
    // Given
    try await makeStale()
    let request = try request()
    let late = Gate()
    loader.gates.withLock { $0 = [2: late] }
    let renewal = asking(request)
    try await eventually { [loader] in loader.started.value == 2 }
    // When
    loader.etag.withLock { $0 = "\"v2\"" }
    let replaced = try await manager.variant(for: try self.request { $0.cache = .refresh })
    loader.etag.withLock { $0 = "\"v1\"" }
    late.open()
    let renewed = try await renewal.value
    // Then
    #expect(renewed.cacheStatus == .missed(.stale, stored: false, status: 304))
    let version = replaced.variant.info.sourceVersion
    #expect(renewed.variant.info.sourceVersion != version)
    #expect(memory.peek(request.key)?.info.sourceVersion == version)
    let variant = await disk.variant(for: request.key)
    let source = await disk.source(for: request.key.source)
    #expect(variant?.info.sourceVersion == version && source?.version == version)
  }

  @Test func `a request after a purge does not join an earlier revalidation`() async throws {
    try await makeStale(whileRevalidate: 10)
    let request = try request()
    let before = Gate()
    loader.gates.withLock { $0 = [2: before] }
    #expect(manager.deliveryAtOnce(for: request) != nil)
    try await eventually { [loader] in loader.started.value == 2 }
    // The purge is published, and older flights accept participants for a moment longer.
    let generation = purges.add(.everything).number
    let after = asking(request)
    try await eventually { [manager] in manager.figures.coalesced == 1 }
    before.open()
    #expect(try await after.value.variant.info.generation == generation)
    #expect(loader.started.value == 3)
  }

  @Test func `a cache-only request never loads, even when it joins a flight`() async throws {
    openAll()
    _ = try await manager.variant(for: try request())
    pass(seconds: 100)
    let gate = Gate()
    disk.sourceGate.withLock { $0 = gate }
    func only(_ scale: Double, maxAge: Int) throws -> ImageRequest {
      try request(scale: scale) {
        $0.cache = .only
        $0.age.maxAge = maxAge
      }
    }
    let patient = asking(try only(0.5, maxAge: 1_000))
    try await eventually { [disk] in disk.readingSources.value == 1 }
    let demanding = asking(try only(0.25, maxAge: 10))
    try await eventually { [manager] in manager.figures.coalesced == 1 }
    gate.open()
    #expect(try await patient.value.cacheStatus == .hit(.source))
    await #expect(throws: ImageError.notCached) { try await demanding.value }
    #expect(loader.started.value == 1)
  }

  @Test func `a variant only in memory is revalidated and not rendered again`() async throws {
    try await makeStale()
    let request = try request()
    await disk.remove(request.key)
    let renewed = try await manager.variant(for: request)
    #expect(renewed.cacheStatus == .missed(.stale, status: 304))
    #expect(processor.started.value == 1)
    #expect(manager.cachedVariant(for: request.key) != nil)
    // The same holds if a request for another size revalidated the source.
    await disk.remove(request.key)
    pass(seconds: 3_600)
    _ = try await manager.variant(for: try self.request(scale: 0.5))
    #expect(try await manager.variant(for: request).cacheStatus == .hit(.memory))
    #expect(processor.started.value == 2)
  }

  /// Replaces the stale variant in both tiers.
  private func replace(isDamaged: Bool = false, version: UInt64? = nil, inFile: Bool = false)
    async throws
  {
    let old = try #require(memory.peek(try request().key))
    var info = old.info
    info.isDamaged = isDamaged
    if let version { info.sourceVersion = version }
    let variant = Variant(
      key: old.key, info: info, body: inFile ? .file(emptyFile()) : old.body)
    memory.remove(old.key)
    if !inFile {
      var gone: [Variant] = []
      _ = memory.store(variant, releasing: &gone)
    }
    _ = disk.store(variant, for: .vouched)
  }

  @Test(arguments: ["damaged", "of another version", "in a file"])
  func `a stale variant that cannot be renewed is rendered again`(_ variant: String) async throws {
    try await makeStale()
    try await replace(
      isDamaged: variant == "damaged", version: variant == "of another version" ? 7 : nil,
      inFile: variant == "in a file")
    let rendered = try await manager.variant(for: try request())
    #expect(rendered.cacheStatus == .missed(.stale, status: 304))
    #expect(processor.started.value == 2)
  }

  @Test func `a variant in memory is renewed although the disk has it in a file`() async throws {
    try await makeStale()
    let variant = try #require(memory.peek(try request().key))
    let file = Variant(key: variant.key, info: variant.info, body: .file(emptyFile()))
    _ = disk.store(file, for: .vouched)
    _ = try await manager.variant(for: try request())
    #expect(processor.started.value == 1)
  }

  @Test(arguments: [true, false])
  func `a stale variant answers only for the version of its stale source`(isSame: Bool)
    async throws
  {
    // Given a variant that has to be asked for, with a source that may be served stale
    try await makeStale(ifError: 600)
    fail(.sourceError(status: 503))
    try await replace(version: isSame ? nil : 7)
    // When
    let answer = try await manager.variant(for: try request())
    // Then
    #expect(answer.cacheStatus == .staleIfError(collapsed: false, originStatus: 503))
    #expect(processor.started.value == (isSame ? 1 : 2))
  }
}
