// CacheModelTests: compares the manager, with its real tiers, freshness rules and purges, to a
// naive reference in random operations.

import Caching
import Core
import Glibc
import Managing
import TestSupport
import Testing

@Suite(.onOwnThreads) struct CacheModelTests {
  /// The size of the tiers.
  struct Room: CustomStringConvertible {
    let description: String
    let memory: Int
    let disk: Int
    /// Everything fits, so a cached entry must be found.
    let keeps: Bool

    static let ample = Room(description: "ample", memory: 64 << 20, disk: 64 << 20, keeps: true)
    /// Memory holds a few dozen variants of at most a sixteenth of it; the disk a third of all.
    static let scarce = Room(description: "scarce", memory: 64 << 10, disk: 600 << 10, keeps: false)
  }

  /// The part of a walk's steps that is taken. `PICTOR_FUZZ_SECONDS`, set by `make fuzz`, asks for
  /// all: of 18 planted faults, a tenth finds 7, and step 43,898 finds the last. Under the thread
  /// sanitizer a walk only looks for races with background threads, since requests come one by one.
  private static let divisor =
    getenv("PICTOR_FUZZ_SECONDS") != nil ? 1 : TestBuild.isThreadSanitized ? 20 : 5

  @Test(arguments: [(Room.ample, 60_000, 1), (Room.scarce, 40_000, 2)])
  func `random operations return only correct responses and find every cached entry`(
    room: Room, steps: Int, seed: Int
  ) async throws {
    let walk = try Walk(room, seed: UInt64(seed))
    for _ in 0..<steps / Self.divisor { try await walk.step() }
    // Then every expected event happened.
    let counts = walk.counts
    let minimum = 10 / Self.divisor
    // The shortest walk may lack a rare one.
    for name in Walk.expected where !TestBuild.isThreadSanitized {
      #expect(counts[name, default: 0] > minimum, "\(name): \(counts)")
    }
    try await walk.end()
  }
}

/// One random walk.
private final class Walk {
  private let room: CacheModelTests.Room
  private let clock = ManualClock()
  private let world: World
  private let folder: TemporaryFolder
  private var oracle = Oracle()
  private var random: SeededGenerator
  private var memory: MemoryTier
  private var disk: DiskTier
  private var manager: ImageManager
  /// Whether the disk was cleared and may still hold entries from before.
  private var isClearingDisk = false
  /// The number of occurrences of each event.
  private(set) var counts: [String: Int] = [:]

  private static let images = 24
  private static let widths = 1...3

  /// Events that must occur for the walk to prove anything.
  static let expected = [
    "hit memory", "hit disk", "hit source", "miss uri-miss", "miss stale", "miss request",
    "failure",
    "stale whileRevalidating", "stale ifError", "stale stood in", "purge",
    "clear", "restart", "clean",
  ]

  init(_ room: CacheModelTests.Room, seed: UInt64) throws {
    self.room = room
    world = World(images: Self.images, clock: clock)
    folder = try TemporaryFolder()
    random = SeededGenerator(seed: seed)
    (memory, disk, manager) = try Self.open(room, world: world, clock: clock, in: folder)
  }

  private static func open(
    _ room: CacheModelTests.Room, world: World, clock: ManualClock, in folder: TemporaryFolder
  ) throws -> (MemoryTier, DiskTier, ImageManager) {
    var memoryConfiguration = MemoryTierConfiguration()
    memoryConfiguration.limit = room.memory
    let memory = MemoryTier(memoryConfiguration)
    var diskConfiguration = DiskTierConfiguration(path: folder.path + "/cache")
    diskConfiguration.limit = room.disk
    diskConfiguration.maximumAge = -1
    let purges = Purges()
    let disk = try DiskTier(diskConfiguration, purges: purges, log: .silent) { clock.now }
    var failures = FailureSettings()
    failures.lifetimes = [404: .seconds(Oracle.memoryOfGone)]
    let manager = ImageManager(
      memory: memory, disk: disk, loader: world, processor: world,
      freshnessPolicy: FreshnessRules(), purges: purges, failures: failures,
      now: { clock.now })
    return (memory, disk, manager)
  }

  private func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &random) < percent }

  private func note(_ what: String) { counts[what, default: 0] += 1 }

  // MARK: Steps

  func step() async throws {
    oracle.begin()
    switch Int.random(in: 0..<2_000, using: &random) {
    case 0..<1_300: try await request()
    case 1_300..<1_700: changeOrigin()
    case 1_700..<1_950: clock.advance(by: Int.random(in: 0...30, using: &random))
    case 1_950..<1_980: try await purge()
    case 1_980..<1_990: try await clear()
    case 1_990..<1_999:
      note("clean")
      _ = await manager.clean()
    default: try await restart()
    }
    // Gathering the figures takes longer than most steps.
    guard oracle.step % 16 == 0 else { return }
    #expect(memory.figures.bytes <= room.memory)
    #expect(disk.figures.bytes <= room.disk)
  }

  private func request() async throws {
    let variety = Oracle.Variety(
      number: Int.random(in: 0..<Self.images, using: &random),
      width: Int.random(in: Self.widths, using: &random))
    var options = LoadOptions()
    switch Int.random(in: 0..<100, using: &random) {
    case 0..<70: options.cache = .normal
    case 70..<82: options.cache = .only
    case 82..<94: options.cache = .refresh
    default: options.cache = .bypass
    }
    let stores: [StoreTiers] = [.all, .all, .all, .all, .memory, .disk, []]
    options.store = stores[Int.random(in: 0..<stores.count, using: &random)]
    var transform = Transform()
    transform.width = variety.width
    let request = ImageRequest(
      source: try SourceURL(parsing: World.url(variety.number)), transform: transform,
      options: options)

    // As the server does it.
    let result: Result<ImageDelivery, ImageError>
    if options.cache == .normal || options.cache == .only,
      let variant = manager.cachedVariant(for: request.key)
    {
      result = .success(
        ImageDelivery(variant: variant, cacheStatus: .hit(.memory), timings: Timings()))
    } else if let delivery = manager.deliveryAtOnce(for: request) {
      result = .success(delivery)
    } else {
      do throws(ImageError) {
        result = .success(try await manager.variant(for: request))
      } catch {
        result = .failure(error)
      }
    }
    // Background revalidation is part of the step.
    while manager.figures.sources + manager.figures.variants > 0
      || manager.freshnessFigures.revalidating > 0
    { await Task.yield() }
    let loads = world.takeLoads()
    oracle.note(loads)
    let complaint: String?
    switch result {
    case .success(let delivery):
      note(delivery.cacheStatus)
      complaint = oracle.complaint(
        about: delivery, to: variety, options: options, loads: loads, now: clock.now,
        keeps: room.keeps)
    case .failure(let error):
      note("failure")
      complaint = oracle.complaint(about: error, to: variety, options: options, now: clock.now)
    }
    #expect(complaint == nil, "step \(oracle.step): \(request) \(result)")
    if complaint != nil { throw NotRight() }
  }

  private func note(_ status: CacheStatus) {
    switch status {
    case .hit(let tier): note("hit \(tier.rawValue)")
    case .staleHit(_, let reason, _): note("stale \(reason)")
    case .staleIfError: note("stale stood in")
    case .miss(let forward, _, _, _): note("miss \(forward.rawValue)")
    }
  }

  private func changeOrigin() {
    let number = Int.random(in: 0..<Self.images, using: &random)
    let terms = Terms(
      lifetime: [0, 5, 20, 60, 600].randomElement(using: &random) ?? 60,
      staleWhileRevalidate: chance(40) ? 15 : 0, staleIfError: chance(40) ? 120 : 0,
      mustRevalidate: chance(15), noStore: chance(8))
    let health: World.Health = chance(75) ? .up : chance(60) ? .down : .gone
    let changes = chance(40)
    world.change(number) { image in
      image.terms = terms
      image.health = health
      if changes { image.version += 1 }
    }
  }

  private func purge() async throws {
    note("purge")
    let number = Int.random(in: 0..<Self.images, using: &random)
    let url = try SourceURL(parsing: World.url(number))
    let all = 0..<Self.images
    switch Int.random(in: 0..<10, using: &random) {
    case 0..<6:
      _ = try await manager.purge(.url(url))
      oracle.purge([number])
    case 6..<8:
      let prefix = try SourceURL(
        parsing: "https://host\(number % 4).example/\(number % 2 == 0 ? "ev" : "od")")
      _ = try await manager.purge(.prefix(prefix))
      oracle.purge(all.filter { $0 % 4 == number % 4 })
    case 8:
      guard let host = HostPattern("host\(number % 4).example") else { return }
      _ = try await manager.purge(.host(host))
      oracle.purge(all.filter { $0 % 4 == number % 4 })
    default:
      _ = try await manager.purge(.everything)
      oracle.purge(Array(all))
    }
  }

  private func clear() async throws {
    note("clear")
    let tiers: StoreTiers = chance(50) ? .memory : .disk
    _ = try await manager.clear(tiers)
    oracle.clear(tiers)
    if tiers.contains(.disk) { isClearingDisk = true }
  }

  private func restart() async throws {
    note("restart")
    #expect(await disk.shutDown(within: .seconds(10)))
    #expect(TemporaryFolder.diskUsage(of: folder.path + "/cache") <= room.disk)
    // The sweeper has a low priority. Until it has carried out a clear, the disk serves no entry
    // that is not in the index yet, and none of the second in which the clear came.
    isClearingDisk = isClearingDisk && disk.figures.purgesPending > 0
    if isClearingDisk { oracle.clear(.disk) }
    (memory, disk, manager) = try Self.open(room, world: world, clock: clock, in: folder)
    oracle.clear(.memory)
  }

  /// Ends the walk and checks that the files on disk match the accounted size.
  func end() async throws {
    #expect(await disk.shutDown(within: .seconds(10)))
    #expect(disk.figures.damaged == 0)
    #expect(disk.figures.bytes == TemporaryFolder.diskUsage(of: folder.path + "/cache"))
  }
}

/// A response was wrong. The failed expectation before it says why.
private struct NotRight: Error {}
