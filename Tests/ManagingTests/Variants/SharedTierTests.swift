// SharedTierTests: which variants machines share, and when a machine takes another's.

import Core
import TestSupport
import Testing

@testable import Managing

/// A shared tier in memory, without purges.
private final class TestFleet: SharedCache {
  private let variants = Lock<[CacheKey: Variant]>([:])
  let mark: SharedMark? = SharedMark(epoch: "e", milliseconds: 1, number: 0)

  var keys: [CacheKey] { variants.withLock { Array($0.keys) } }

  func variant(for key: CacheKey, generation: Int) async -> Variant? {
    variants.withLock { $0[key] }.map { variant in
      var info = variant.info
      info.generation = generation
      return Variant(key: key, info: info, body: variant.body)
    }
  }

  func store(_ variant: Variant, since mark: SharedMark) {
    variants.withLock { $0[variant.key] = variant }
  }

  func beginPurge(_ scope: PurgeScope) -> Int { 1 }

  func publish(_ scope: PurgeScope, number: Int, isDurable: Bool) async {}
}

/// One machine.
private final class Machine: ManagedTests {
  init(_ fleet: TestFleet, on disk: TestDisk = TestDisk()) {
    super.init(disk: disk, fleet: fleet)
    openAll()
  }

  func ask(_ request: ImageRequest) async throws -> CacheStatus {
    try await manager.variant(for: request).cacheStatus
  }

  func upload(_ url: String) async throws {
    _ = try await manager.put(
      try SourceURL(parsing: url), file: try .sealed(try TestImages.png(width: 8, height: 8)),
      origin: OriginResponse(status: 200))
  }
}

@Suite struct SharedTierTests {
  private let fleet = TestFleet()
  private let a: Machine
  private let b: Machine

  init() { (a, b) = (Machine(fleet), Machine(fleet)) }

  private func request(
    _ url: String = "http://origin/a.jpg", scale: Double = 0.5, watermark: String? = nil
  ) throws -> ImageRequest {
    var transform = Transform()
    transform.scale = scale
    transform.watermark = try watermark.map { Watermark(source: try SourceURL(parsing: $0)) }
    return ImageRequest(source: try SourceURL(parsing: url), transform: transform)
  }

  @Test func `a variant of another machine is a hit, and is in both tiers then`() async throws {
    let request = try request()
    #expect(try await a.ask(request).isMiss)
    #expect(try await b.ask(request) == .hit(.shared))
    #expect(b.loader.started.value == 0 && b.processor.started.value == 0)
    #expect(b.manager.cachedVariant(for: request.key) != nil)
    #expect(await b.disk.variant(for: request.key) != nil)
  }

  @Test func `variants of an upload are not shared, and others' are not taken for it`()
    async throws
  {
    let shared = try request(scale: 0.5)
    let other = try request(scale: 0.25)
    #expect(try await b.ask(shared).isMiss)
    try await a.upload("http://origin/a.jpg")
    // Neither before nor after a restart, which forgets what was uploaded.
    for machine in [a, restarted(a)] {
      #expect(try await machine.ask(shared) != .hit(.shared))
      #expect(try await machine.ask(other) != .hit(.shared))
      #expect(machine.loader.started.value == 0)
    }
    #expect(fleet.keys == [shared.key])
    // Not even one that the origin sent later.
    let later = Machine(fleet)
    later.pass(seconds: 10)
    #expect(try await later.ask(other).isMiss)
    #expect(fleet.keys.contains(other.key))
    #expect(try await restarted(a).ask(other) != .hit(.shared))
  }

  @Test func `variants with an uploaded or a local watermark are not shared`() async throws {
    let uploaded = try request(watermark: "http://origin/mark.png")
    #expect(try await b.ask(uploaded).isMiss)
    #expect(fleet.keys == [uploaded.key])
    try await a.upload("http://origin/mark.png")
    #expect(try await a.ask(uploaded).isMiss)
    let second = try request(scale: 0.25, watermark: "http://origin/mark.png")
    #expect(try await a.ask(second) == .hit(.source))
    #expect(fleet.keys == [uploaded.key])
    let local = try request(scale: 0.125, watermark: "local:///mark.png")
    _ = try await a.ask(local)
    #expect(fleet.keys == [uploaded.key])
  }

  @Test func `a variant derived from one of an upload is not shared`() async throws {
    try await a.upload("http://origin/a.jpg")
    for scale in [1.0, 0.5, 0.25] { _ = try await a.ask(try request(scale: scale)) }
    #expect(fleet.keys.isEmpty)
  }

  @Test func `a machine whose source is not older renders from it`() async throws {
    let shared = try request(scale: 0.5)
    let other = try request(scale: 0.25)
    #expect(try await a.ask(shared).isMiss)
    b.pass(seconds: 10)
    #expect(try await b.ask(other).isMiss)
    #expect(try await b.ask(shared) == .hit(.source))
    // The other machine's source is the older one, so it takes the later variant.
    #expect(try await a.ask(other) == .hit(.shared))
  }

  @Test func `variants of local files are not shared`() async throws {
    _ = try await a.ask(try request("local:///a.jpg"))
    #expect(fleet.keys.isEmpty)
  }

  /// A machine with the disk of another one, and an empty memory.
  private func restarted(_ machine: Machine) -> Machine {
    Machine(fleet, on: machine.disk)
  }
}

extension CacheStatus {
  fileprivate var isMiss: Bool { if case .miss = self { true } else { false } }
}
