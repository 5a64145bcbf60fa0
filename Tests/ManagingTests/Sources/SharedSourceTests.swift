// SharedSourceTests: when a machine takes another machine's source, shares its own, and ends its lease.

import Model
import Platform
import Telemetry
import TestSupport
import Testing

@testable import Managing

/// A fleet whose sources a test decides.
private final class TestFleet: SharedCache, SharedSources {
  final class Lease: WorkLease {
    let ends = Counter()
    let order: Lock<[String]>
    init(_ order: Lock<[String]>) { self.order = order }
    func end(admitting admit: (@Sendable () -> Void)?) {
      ends.add()
      order.withLock { $0.append("end") }
    }
  }

  let mark: SharedMark? = SharedMark(epoch: "e", milliseconds: 1, number: 0)
  var sources: (any SharedSources)? { self }
  /// What the fleet is told, in order.
  let order = Lock<[String]>([])
  let lease: Lease
  init() { lease = Lease(order) }
  /// What another machine's load failed with, while this one waited.
  let failed = Lock<ImageError?>(nil)
  let asked = Counter()
  /// What another machine has; `nil`: the lease is free.
  let other = Lock<Source?>(nil)
  let stored = Lock<[Source]>([])

  let sharesFailures = true
  func look(
    for key: CacheKey, generation: Int, withFailure: Bool, takingLease: Bool
  ) async -> SharedLookup {
    SharedLookup()
  }
  func share(_ failure: SharedFailure, since mark: SharedMark) {
    order.withLock { $0.append("failure") }
  }
  func removeFailure(of source: CacheKey) {}
  func store(_ variant: Variant, since mark: SharedMark) {}
  func lease(_ request: LeaseRequest) async -> LeaseOutcome<Variant> { .none }
  func beginPurge(_ scope: PurgeScope) -> Int { 1 }
  func publish(_ scope: PurgeScope, number: Int, isDurable: Bool) async {}

  func source(_ request: SharedSourceRequest) async -> LeaseOutcome<Source> {
    asked.add()
    if let error = failed.withLock({ $0 }) {
      return .failed(SharedFailure(key: request.key, error: error, seconds: 60, clientSeconds: 60))
    }
    guard let found = other.withLock({ $0 }), request.accepts(found.freshness) else {
      return .held(lease)
    }
    return .shared(
      Source(
        key: request.key, file: found.file, origin: found.origin, freshness: found.freshness,
        version: found.version, generation: request.generation()))
  }

  func store(_ source: Source, since mark: SharedMark) { stored.withLock { $0.append(source) } }

  let removed = Lock<[UInt64]>([])
  func remove(_ key: CacheKey, version: UInt64) { removed.withLock { $0.append(version) } }
}

private final class Machine: ManagedTests {
  init(_ fleet: TestFleet) {
    super.init(disk: TestDisk(), fleet: fleet)
    openAll()
  }
}

@Suite struct SharedSourceTests {
  private let fleet = TestFleet()
  private let machine: Machine
  private let key: CacheKey

  init() throws {
    machine = Machine(fleet)
    key = try machine.request().key.source
  }

  private func other(
    version: UInt64 = 9, at seconds: Int = 1_000
  ) -> Source {
    Source(
      key: key, file: emptyFile(), origin: OriginResponse(status: 200),
      freshness: Freshness(receivedAt: UnixTime(seconds: seconds), lifetime: 1_000_000),
      version: version)
  }

  @Test func `a load has a lease, and its source is shared`() async throws {
    _ = try await machine.manager.variant(for: try machine.request(scale: 0.5))
    #expect(machine.loader.started.value == 1 && fleet.lease.ends.value >= 1)
    #expect(fleet.stored.withLock { $0.map(\.key) } == [key])
  }

  @Test func `another machine's source is rendered, stored here and not shared again`()
    async throws
  {
    fleet.other.withLock { $0 = other() }
    let request = try machine.request(scale: 0.5)
    let delivery = try await machine.manager.variant(for: request)
    #expect(delivery.cacheStatus == .hit(.source) && machine.loader.started.value == 0)
    #expect(delivery.variant.info.sourceVersion == 9)
    #expect(await machine.disk.source(for: key)?.version == 9)
    #expect(fleet.stored.withLock { $0.isEmpty })
    // From now on it is this machine's.
    _ = try await machine.manager.variant(for: try machine.request(scale: 0.25))
    #expect(fleet.asked.value == 1)
  }

  @Test func `a newer source replaces an old one and its variants`() async throws {
    let request = try machine.request(scale: 0.5)
    _ = try await machine.manager.variant(for: request)
    machine.pass(seconds: 100_000)
    fleet.other.withLock { $0 = other(at: 101_000) }
    let delivery = try await machine.manager.variant(for: request)
    #expect(delivery.variant.info.sourceVersion == 9 && machine.loader.started.value == 1)
    #expect(await machine.disk.source(for: key)?.version == 9)
  }

  @Test func `an older source than this machine's is not taken`() async throws {
    machine.pass(seconds: 100)
    _ = try await machine.manager.variant(for: try machine.request(scale: 0.5))
    machine.pass(seconds: 4_000)
    // Still fresh by what its origin said, but of before.
    fleet.other.withLock { $0 = other(at: 1_000) }
    _ = try await machine.manager.variant(for: try machine.request(scale: 0.25))
    #expect(machine.loader.started.value == 2)
  }

  @Test func `a source that does not decode is removed for all, and a retry asks the origin`()
    async throws
  {
    fleet.other.withLock { $0 = other() }
    machine.processor.failure.withLock { $0 = .undecodable(detail: "?") }
    _ = try? await machine.manager.variant(for: try machine.request(scale: 0.5))
    #expect(fleet.removed.withLock { $0 } == [9] && machine.loader.started.value == 0)
    machine.processor.failure.withLock { $0 = nil }
    // The shared tier still has it, as if another machine had shared it again.
    _ = try await machine.manager.variant(
      for: try machine.request(scale: 0.5) { $0.retriesFailed = true })
    #expect(machine.loader.started.value == 1)
  }

  @Test func `a source that is gone is removed for all`() async throws {
    _ = try await machine.manager.variant(for: try machine.request(scale: 0.5))
    let version = await machine.disk.source(for: key)?.version
    machine.loader.failure.withLock { $0 = .sourceNotFound(status: 404) }
    _ = try? await machine.manager.variant(
      for: try machine.request(scale: 0.5) { $0.cache = .refresh })
    #expect(fleet.removed.withLock { $0 } == [version])
  }

  @Test(arguments: [("max-age=60", 0), ("no-cache", 1), ("no-store", 1)])
  func `a response that others will not take ends its lease with its head`(
    control: String, ends: Int
  ) async throws {
    let machine = ManagedTests(disk: TestDisk(), fleet: fleet)
    let task = machine.asking(try machine.request(scale: 0.5))
    try await eventually { machine.loader.started.value == 1 }
    var head = OriginResponse(status: 200)
    head.cacheControl = control
    machine.loader.requests.withLock { $0.last }?.onHead?(head)
    #expect(fleet.lease.ends.value == ends)
    task.cancel()
    _ = await task.result
  }

  @Test func `requests that ask for the origin do not ask the fleet`() async throws {
    fleet.other.withLock { $0 = other() }
    for mode in [CacheUse.refresh, .bypass] {
      _ = try await machine.manager.variant(
        for: try machine.request(scale: 0.5) { $0.cache = mode })
    }
    #expect(machine.loader.started.value == 2 && fleet.asked.value == 0)
    _ = try? await machine.manager.variant(for: try machine.request("local:///a.jpg", scale: 0.5))
    #expect(fleet.asked.value == 0)
  }

  @Test func `a load that fails ends its lease and shares nothing`() async throws {
    machine.loader.failure.withLock { $0 = .sourceError(status: 500) }
    _ = try? await machine.manager.variant(for: try machine.request(scale: 0.5))
    #expect(fleet.lease.ends.value >= 1 && fleet.stored.withLock { $0.isEmpty })
  }

  @Test func `others hear of a failure before its lease ends`() async throws {
    machine.loader.failure.withLock { $0 = .sourceNotFound(status: 404) }
    _ = try? await machine.manager.variant(for: try machine.request(scale: 0.5))
    #expect(fleet.order.withLock { $0 } == ["failure", "end"])
  }

  @Test func `a load that failed elsewhere meanwhile is not repeated`() async throws {
    fleet.failed.withLock { $0 = .sourceNotFound(status: 404) }
    await #expect(throws: ImageError.self) {
      try await machine.manager.variant(for: try machine.request(scale: 0.5))
    }
    #expect(machine.loader.started.value == 0)
    // One that asks again loads it.
    _ = try await machine.manager.variant(
      for: try machine.request(scale: 0.5) { $0.retriesFailed = true })
    #expect(machine.loader.started.value == 1)
  }

  @Test func `a load without a waiting request ends its lease`() async throws {
    let machine = ManagedTests(disk: TestDisk(), fleet: fleet)
    let task = machine.asking(try machine.request(scale: 0.5))
    try await eventually { machine.loader.started.value == 1 }
    #expect(fleet.lease.ends.value == 0)
    task.cancel()
    _ = await task.result
    try await eventually { fleet.lease.ends.value >= 1 }
  }

  @Test func `a response that may not be stored ends its lease, and is not shared`() async throws {
    machine.loader.cacheControl.withLock { $0 = "no-store" }
    _ = try await machine.manager.variant(for: try machine.request(scale: 0.5))
    #expect(fleet.lease.ends.value >= 1 && fleet.stored.withLock { $0.isEmpty })
  }

  @Test func `a request that stores nothing on disk shares nothing`() async throws {
    _ = try await machine.manager.variant(
      for: try machine.request(scale: 0.5) { $0.store = .memory })
    #expect(fleet.stored.withLock { $0.isEmpty })
  }
}
