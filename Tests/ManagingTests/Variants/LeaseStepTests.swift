// LeaseStepTests: when a machine takes a lease, waits, and ends the lease.

import Model
import Platform
import Telemetry
import TestSupport
import Testing

@testable import Managing

/// A fleet whose leases a test decides.
private final class TestFleet: SharedCache {
  final class Lease: WorkLease {
    let ends = Counter()
    func end(admitting admit: (@Sendable () -> Void)?) { ends.add() }
  }

  let mark: SharedMark? = nil
  let sources: (any SharedSources)? = nil
  let lease = Lease()
  let asked = Lock<[LeaseRequest]>([])
  /// What another machine makes; `nil`: the lease is free.
  let made = Lock<Variant?>(nil)
  /// Whether a look-up takes the lease.
  let isFree = Lock(false)
  let failure = Lock<ImageError?>(nil)

  let sharesFailures = true

  func look(
    for key: CacheKey, generation: Int, withFailure: Bool, takingLease: Bool
  ) async -> SharedLookup {
    let failure = failure.withLock { $0 }.map {
      SharedFailure(key: key.source, error: $0, seconds: 60, clientSeconds: 60)
    }
    return SharedLookup(
      failure: failure, lease: takingLease && isFree.withLock { $0 } ? lease : nil)
  }

  func store(_ variant: Variant, since mark: SharedMark) {}

  func share(_ failure: SharedFailure, since mark: SharedMark) {}

  func removeFailure(of source: CacheKey) {}

  func lease(_ request: LeaseRequest) async -> LeaseOutcome<Variant> {
    asked.withLock { $0.append(request) }
    guard let made = made.withLock({ $0 }) else { return .held(lease) }
    var info = made.info
    info.generation = request.generation()
    let variant = Variant(key: request.key, info: info, body: made.body)
    return await request.accepts(variant) ? .shared(variant) : .none
  }

  func beginPurge(_ scope: PurgeScope) -> Int { 1 }

  func publish(_ scope: PurgeScope, number: Int, isDurable: Bool) async {}
}

private final class Machine: ManagedTests {
  init(_ fleet: TestFleet) { super.init(disk: TestDisk(), fleet: fleet) }
}

@Suite struct LeaseStepTests {
  private let fleet = TestFleet()
  private let machine: Machine

  init() { machine = Machine(fleet) }

  @Test func `the lease lasts as long as the work`() async throws {
    let task = machine.asking(try machine.request(scale: 0.5))
    try await eventually { machine.loader.started.value == 1 }
    #expect(fleet.asked.withLock { $0.map(\.waits) } == [true])
    #expect(fleet.lease.ends.value == 0)
    machine.openAll()
    _ = try await task.value
    #expect(fleet.lease.ends.value >= 1)
  }

  @Test func `a lease that the look-up has taken is not asked for again, and lasts as long`()
    async throws
  {
    fleet.isFree.withLock { $0 = true }
    let task = machine.asking(try machine.request(scale: 0.5))
    try await eventually { machine.loader.started.value == 1 }
    #expect(fleet.asked.withLock { $0.isEmpty } && fleet.lease.ends.value == 0)
    machine.openAll()
    _ = try await task.value
    #expect(fleet.lease.ends.value >= 1)
  }

  @Test func `a lease that the look-up has taken ends with each kind of answer`() async throws {
    machine.openAll()
    fleet.isFree.withLock { $0 = true }
    // A failure of another machine.
    fleet.failure.withLock { $0 = .sourceNotFound(status: 404) }
    _ = try? await machine.manager.variant(for: try machine.request(scale: 0.5))
    #expect(fleet.lease.ends.value == 1)
    // A failure that is listed: no lease is taken.
    _ = try? await machine.manager.variant(for: try machine.request(scale: 0.25))
    #expect(fleet.lease.ends.value == 1 && machine.loader.started.value == 0)
    // A plain source, and a request for caches alone: none is taken.
    fleet.failure.withLock { $0 = nil }
    _ = try await machine.manager.variant(for: try machine.request("http://origin/b.jpg"))
    _ = try? await machine.manager.variant(
      for: try machine.request("http://origin/c.jpg", scale: 0.5) { $0.cache = .only })
    #expect(fleet.lease.ends.value == 1)
    // A load that fails.
    machine.loader.failure.withLock { $0 = .sourceError(status: 500) }
    _ = try? await machine.manager.variant(
      for: try machine.request("http://origin/d.jpg", scale: 0.5))
    #expect(fleet.lease.ends.value >= 2)
  }

  @Test func `a request without participants ends its lease`() async throws {
    let task = machine.asking(try machine.request(scale: 0.5))
    try await eventually { machine.loader.started.value == 1 }
    task.cancel()
    _ = await task.result
    try await eventually { fleet.lease.ends.value >= 1 }
  }

  @Test func `what another machine makes is the answer`() async throws {
    machine.openAll()
    let request = try machine.request(scale: 0.5)
    let own = try await machine.manager.variant(for: request).variant
    let other = Machine(fleet)
    fleet.made.withLock { $0 = own }
    #expect(try await other.manager.variant(for: request).cacheStatus == .hit(.shared))
    #expect(other.loader.started.value == 0)
    #expect(other.manager.cachedVariant(for: request.key) != nil)
  }

  @Test func `a variant that is too old is no answer`() async throws {
    machine.openAll()
    let request = try machine.request(scale: 0.5)
    let own = try await machine.manager.variant(for: request).variant
    let other = Machine(fleet)
    other.openAll()
    other.pass(seconds: 1_000_000)
    fleet.made.withLock { $0 = own }
    _ = try await other.manager.variant(for: request)
    #expect(other.loader.started.value == 1)
  }

  @Test func `a machine that has the source does not wait`() async throws {
    machine.openAll()
    for scale in [0.5, 0.25] {
      _ = try await machine.manager.variant(for: try machine.request(scale: scale))
    }
    #expect(fleet.asked.withLock { $0.map(\.waits) } == [true, false])
  }

  @Test func `plain sources, local files and requests for caches alone take no lease`()
    async throws
  {
    machine.openAll()
    _ = try await machine.manager.variant(for: try machine.request())
    _ = try? await machine.manager.variant(for: try machine.request("local:///a.jpg", scale: 0.5))
    _ = try? await machine.manager.variant(
      for: try machine.request("http://origin/b.jpg", scale: 0.5) { $0.cache = .only })
    #expect(fleet.asked.withLock { $0.isEmpty })
  }
}
