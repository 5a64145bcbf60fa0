// ToldFailuresTests: which failures a machine tells others, and when it takes theirs.

import Model
import Platform
import Telemetry
import TestSupport
import Testing

@testable import Managing

/// A fleet in memory that shares failures alone.
private final class TestFleet: SharedCache {
  let mark: SharedMark? = SharedMark(epoch: "e", milliseconds: 1, number: 0)
  let sources: (any SharedSources)? = nil
  let sharesFailures = true
  let failures = Lock<[CacheKey: SharedFailure]>([:])
  let published = Lock<[PurgeScope]>([])
  /// Where look-ups wait; open at first.
  let gate = Gate()
  let looks = Counter()
  let leases = Counter()
  /// What `lease` answers with; `nil`: no lease.
  let leased = Lock<SharedFailure?>(nil)

  init() { gate.open() }

  var keys: [CacheKey] { failures.withLock { Array($0.keys) } }

  func look(
    for key: CacheKey, generation: Int, withFailure: Bool, takingLease: Bool
  ) async -> SharedLookup {
    let failure = withFailure ? failures.withLock { $0[key.source] } : nil
    if withFailure { looks.add() }
    await gate.pass()
    return SharedLookup(failure: failure)
  }

  func store(_ variant: Variant, since mark: SharedMark) {}

  func share(_ failure: SharedFailure, since mark: SharedMark) {
    failures.withLock { $0[failure.key] = failure }
  }

  func removeFailure(of source: CacheKey) { failures.withLock { $0[source] = nil } }

  func lease(_ request: LeaseRequest) async -> LeaseOutcome<Variant> {
    leases.add()
    return leased.withLock { $0 }.map { .failed($0) } ?? .none
  }

  func beginPurge(_ scope: PurgeScope) -> Int { 1 }

  func publish(_ scope: PurgeScope, number: Int, isDurable: Bool) async {
    published.withLock { $0.append(scope) }
  }
}

private final class Machine: ManagedTests {
  init(_ fleet: TestFleet) {
    super.init(disk: TestDisk(), fleet: fleet)
    openAll()
  }

  func failure(_ request: ImageRequest) async -> ImageError? {
    do throws(ImageError) {
      _ = try await manager.variant(for: request)
      return nil
    } catch {
      return error
    }
  }
}

@Suite struct ToldFailuresTests {
  private let fleet = TestFleet()
  private let a: Machine
  private let b: Machine

  init() { (a, b) = (Machine(fleet), Machine(fleet)) }

  private func fail(_ error: ImageError = .sourceNotFound(status: 404)) async throws {
    a.loader.failure.withLock { $0 = error }
    #expect(await a.failure(try a.request(scale: 0.5)) != nil)
  }

  @Test func `another machine answers as with its own failure`() async throws {
    try await fail()
    let own = await a.failure(try a.request(scale: 0.5))
    #expect(await b.failure(try b.request(scale: 0.25)) == own)
    #expect(b.loader.started.value == 0)
    // What is listed is not looked up again, nor is a lease taken.
    let (looks, leases) = (fleet.looks.value, fleet.leases.value)
    #expect(await b.failure(try b.request(scale: 0.25)) == own)
    #expect(fleet.looks.value == looks && fleet.leases.value == leases && leases == 1)
    guard case .remembered(.sourceNotFound(404), 600, _, true) = own else {
      Issue.record("\(String(describing: own))")
      return
    }
  }

  @Test func `a failure that is passed on is not told again`() throws {
    let key = try a.request().key.source
    let cache = NegativeCache(policy: FailurePolicy(), purges: TestPurges(), fleet: fleet) {
      UnixTime(seconds: 0)
    }
    let told = cache.add(.sourceNotFound(status: 404), of: key, since: 0, freshness: nil)
    #expect(fleet.keys == [key])
    fleet.removeFailure(of: key)
    // As in a flight that waited for the one that failed.
    #expect(cache.add(told, of: key, since: 0, freshness: nil) == told)
    #expect(fleet.keys == [])
  }

  @Test func `a failure to decode is told for the source, and that of a variant is not`()
    async throws
  {
    a.processor.failure.withLock { $0 = .undecodable(detail: "?") }
    #expect(await a.failure(try a.request(scale: 0.5)) != nil)
    #expect(fleet.keys == [try a.request().key.source])
    #expect(await b.failure(try b.request(scale: 0.25))?.code == "undecodable")
    #expect(b.loader.started.value == 0 && b.processor.started.value == 0)
    a.processor.failure.withLock { $0 = .ofVariant(.undecodable(detail: "?")) }
    #expect(await a.failure(try a.request("http://origin/b.jpg", scale: 0.5)) != nil)
    #expect(fleet.keys.count == 1)
  }

  @Test func `passing failures, local files and requests of some clients are not told`()
    async throws
  {
    try await fail(.sourceUnreachable(detail: "?"))
    a.loader.failure.withLock { $0 = .sourceNotFound(status: 404) }
    _ = await a.failure(try a.request("local:///a.jpg", scale: 0.5))
    #expect(fleet.keys.isEmpty)
  }

  @Test func `requests that ignore failures ignore told ones`() async throws {
    try await fail()
    #expect(await b.failure(try b.request(scale: 0.5) { $0.retriesFailed = true }) == nil)
    // Its success is for all.
    #expect(fleet.keys.isEmpty)
    try await fail()
    let c = Machine(fleet)
    #expect(await c.failure(try c.request(scale: 0.5) { $0.cache = .refresh }) == nil)
    #expect(c.loader.started.value == 1)
  }

  @Test func `a machine that has the source ignores what is told`() async throws {
    #expect(await b.failure(try b.request(scale: 0.5)) == nil)
    try await fail()
    #expect(await b.failure(try b.request(scale: 0.25)) == nil)
    #expect(b.manager.failedURLs().isEmpty)
    // A stale one is revalidated.
    b.pass(seconds: 1_000_000)
    #expect(await b.failure(try b.request(scale: 0.25)) == nil)
    #expect(b.loader.started.value == 2)
  }

  @Test func `a failure found before a purge or a removal is not listed after it`() async throws {
    let url = try SourceURL(parsing: "http://origin/a.jpg")
    for number in 0..<3 {
      try await share(url)
      let c = Machine(fleet)
      fleet.gate.close()
      let looks = fleet.looks.value
      let task = c.asking(try c.request(scale: 0.5))
      try await eventually { fleet.looks.value == looks + 1 }
      switch number {
      case 0: _ = try await c.manager.purge(.url(url))
      case 1: _ = try await c.manager.removeFailedURLs(nil)
      default: try await c.manager.applyPurge(.failures(url))
      }
      fleet.gate.open()
      _ = try await task.value
      #expect(c.manager.failedURLs().isEmpty, "\(number)")
    }
  }

  private func share(_ url: SourceURL) async throws {
    fleet.share(
      SharedFailure(
        key: CacheKey(source: url), error: .sourceNotFound(status: 404), seconds: 60,
        clientSeconds: 60), since: try #require(fleet.mark))
  }

  @Test func `removing failures is published, and applied by others to failures alone`()
    async throws
  {
    try await fail()
    let url = try SourceURL(parsing: "http://origin/a.jpg")
    #expect(try await a.manager.removeFailedURLs(url) == 1)
    #expect(try await a.manager.removeFailedURLs(nil) == 0)
    #expect(fleet.published.withLock { $0 } == [.failures(url), .failures(nil)])
    let image = try b.request("http://origin/b.jpg", scale: 0.5)
    #expect(await b.failure(image) == nil)
    b.loader.failure.withLock { $0 = .sourceNotFound(status: 404) }
    _ = await b.failure(try b.request("http://origin/c.jpg", scale: 0.5))
    #expect(b.manager.failedURLs().count == 1)
    try await b.manager.applyPurge(.failures(nil))
    #expect(b.manager.failedURLs().isEmpty)
    #expect(b.manager.cachedVariant(for: image.key) != nil)
    #expect(fleet.published.withLock { $0.count } == 2)
  }

  @Test func `a wait for another machine that ends with its failure is one here`() async throws {
    let source = CacheKey(source: try SourceURL(parsing: "http://origin/a.jpg"))
    for error in [ImageError.sourceNotFound(status: 404), .undecodable(detail: "?")] {
      fleet.leased.withLock {
        $0 = SharedFailure(key: source, error: error, seconds: 60, clientSeconds: 30)
      }
      let c = Machine(fleet)
      #expect(
        await c.failure(try c.request(scale: 0.5))
          == .remembered(error, seconds: 60, clientSeconds: 30, isRepeated: true))
      #expect(c.loader.started.value == 0)
    }
  }

  @Test func `this machine's own times bound what is told`() async throws {
    fleet.share(
      SharedFailure(
        key: CacheKey(source: try SourceURL(parsing: "http://origin/a.jpg")),
        error: .sourceNotFound(status: 404), seconds: 86_400, clientSeconds: 86_400),
      since: try #require(fleet.mark))
    #expect(
      await b.failure(try b.request(scale: 0.5))
        == .remembered(.sourceNotFound(status: 404), seconds: 600, isRepeated: true))
    b.pass(seconds: 601)
    fleet.removeFailure(of: try b.request().key.source)
    #expect(await b.failure(try b.request(scale: 0.5)) == nil)
  }
}
