// SourceMachines: machines that share sources by a real Redis and a store that a test controls.

import Caching
import Glibc
import Model
import Platform
import Telemetry
import TestSupport
import Testing

@testable import Sharing

/// A store in memory, which a test damages and stops.
final class TestStore: SharedStore {
  let entries = Lock<[String: [UInt8]]>([:])
  let isUp = Lock(true)
  let reads = Counter()
  let writes = Counter()
  /// Writes wait here.
  let gate = Lock<Gate?>(nil)

  var isReady: Bool { isUp.withLock { $0 } }

  func read(_ name: String) async -> SharedRead {
    reads.add()
    guard isReady else { return .unavailable }
    guard let bytes = entries.withLock({ $0[name] }) else { return .absent }
    return (try? FileRegion.sealed(bytes)).map { .found($0) } ?? .unavailable
  }

  func write(_ name: String, head: [UInt8], body: FileRegion?, lifetime: Int) async -> Bool {
    if let gate = gate.withLock({ $0 }) { await gate.pass() }
    guard isReady else { return false }
    writes.add()
    var bytes = [UInt8](repeating: 0, count: body?.count ?? 0)
    if let body { _ = pread(body.descriptor, &bytes, bytes.count, off_t(body.offset)) }
    entries.withLock { $0[name] = head + bytes }
    return true
  }
}

struct NotHeld: Error {}

extension LeaseOutcome<Source> {
  var name: String {
    switch self {
    case .none: "none"
    case .held: "held"
    case .shared: "shared"
    case .failed: "failed"
    }
  }

  var source: Source? { if case .shared(let source) = self { source } else { nil } }
}

/// Machines that share sources by one Redis and one store. The base of test suites.
class SourceMachines {
  final class Machine: Sendable {
    let fleet: Fleet

    init(_ server: RedisServer, _ store: TestStore, leases: Bool) throws {
      var settings = FleetSettings()
      settings.timeout = .seconds(10)
      settings.retryInterval = .milliseconds(20)
      settings.leases = leases
      settings.leaseWait = .seconds(60)
      let address = try #require(RedisAddress(server.address))
      var configuration = FleetConfiguration(address: address, settings: settings, folder: nil)
      var bucket = SharedBucketSettings()
      bucket.name = "shared"
      bucket.entryLimit = 64 << 20
      bucket.variants = false
      configuration.bucket = try S3Configuration(bucket, credentials: nil)
      configuration.leaseTiming.poll = .seconds(60)
      configuration.leaseTiming.life = .seconds(60)
      fleet = try Fleet(
        configuration, coding: StoredVariantCoding(memory: .unlimited),
        sourceCoding: StoredSourceCoding(), objects: store, log: .silent)
      fleet.start { _ in }
    }

    deinit { Task { [fleet] in await fleet.stop() } }

    var figures: SharedSourceFigures { fleet.figures.sources ?? SharedSourceFigures() }

    func find(
      _ key: CacheKey, accepts: @escaping @Sendable (Freshness) -> Bool = { _ in true }
    ) async -> LeaseOutcome<Source> {
      await fleet.sources?.source(
        SharedSourceRequest(key: key, generation: { 7 }, accepts: accepts)) ?? .none
    }

    /// Takes a lease that is free.
    func take(_ key: CacheKey) async throws -> any WorkLease {
      guard case .held(let lease) = await find(key) else { throw NotHeld() }
      return lease
    }

    func share(_ source: Source) throws {
      fleet.sources?.store(source, since: try #require(fleet.mark))
    }
  }

  let server: RedisServer
  let store = TestStore()
  let key: CacheKey
  let bytes: [UInt8] = [0xff, 0xd8, 0xff, 0xe0] + (0..<5_000).map { UInt8($0 & 255) }

  init() throws {
    server = try RedisServer()
    key = try Self.key("/a.jpg")
  }

  static func key(_ path: String) throws -> CacheKey {
    ImageRequest(source: try SourceURL(parsing: "http://origin\(path)"), transform: Transform()).key
      .source
  }

  func machine(leases: Bool = true) async throws -> Machine {
    let machine = try Machine(server, store, leases: leases)
    try await eventually("the machine has read the stream") {
      machine.fleet.isSynchronised && machine.fleet.figures.isConnected
        && (!leases || machine.fleet.client.isReady(.notices))
    }
    return machine
  }

  func source(_ key: CacheKey? = nil, version: UInt64 = 5) throws -> Source {
    var origin = OriginResponse(status: 200)
    origin.etag = "\"e\""
    origin.contentType = "image/jpeg"
    return Source(
      key: key ?? self.key, file: try FileRegion.sealed(bytes), origin: origin,
      freshness: Freshness(receivedAt: .now, lifetime: 600), version: version)
  }

  /// Shares a source and waits until others can read it.
  func share(_ machine: Machine, _ source: Source) async throws {
    let before = machine.figures.stores
    try machine.share(source)
    try await eventually { machine.figures.stores == before + 1 }
  }
}
