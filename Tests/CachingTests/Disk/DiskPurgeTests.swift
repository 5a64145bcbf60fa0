// DiskPurgeTests: purged entries are misses at once, and their files are removed, also after
// failures and restarts.

import Core
import Glibc
import TestSupport
import Testing

@testable import Caching

@Suite(.onOwnThreads) final class DiskPurgeTests: DiskFolderTests {
  static let one = "https://shop.example/a/1.jpg"
  /// Ten URLs of two hosts. Two URLs of each host also have a varied source.
  static let texts = (0..<10).flatMap { number -> [String] in
    let url =
      "https://\(number < 5 ? "shop" : "other").example/\(number % 2 == 0 ? "a" : "b")/\(number).jpg"
    return number % 5 == 0 ? [url, url + "#abc"] : [url]
  }

  /// Stores the source of each text and two variants of it.
  @discardableResult
  func fill(_ tier: DiskTier, with texts: [String] = texts, generation: Int? = nil) async throws
    -> Int
  {
    let generation = generation ?? purges.generation
    for text in texts {
      tier.store(try Sample.source(text, generation: generation))
      for width in 1...2 {
        tier.store(Sample.variant("\(text) w=\(width)", generation: generation))
      }
    }
    #expect(await tier.quiet())
    return texts.count * 3
  }

  /// Returns how many of the entries that `fill` stores are found, by every kind of look-up.
  func found(in tier: DiskTier, of texts: [String] = texts) async -> Int {
    var found = 0
    for text in texts {
      let source = CacheKey(text: text)
      let isKept = await tier.look(for: source) != nil
      if await tier.source(for: source) != nil { found += 1 }
      #expect(isKept == (await tier.source(for: source) != nil))
      for width in 1...2 {
        let key = CacheKey(text: "\(text) w=\(width)")
        let isKept = await tier.look(for: key) != nil
        let isFoundAtOnce = tier.variantAtOnce(for: key) { _ in true } != nil
        if await tier.variant(for: key) != nil { found += 1 } else { #expect(!isFoundAtOnce) }
        #expect(isKept == (await tier.variant(for: key) != nil))
      }
    }
    return found
  }

  /// Reads the purge journal; `nil` without one.
  func notes() -> PurgeJournal? {
    FileRegion(cache + "/purges").map {
      PurgeJournal(parsing: String(decoding: $0.bytes, as: UTF8.self)) { _ in }
    }
  }

  func url(_ text: String) throws -> PurgeScope { .url(try SourceURL(parsing: text)) }

  @Test func `a URL purge removes its sources and variants with their files, and no other entry`()
    async throws
  {
    let tier = try open()
    let count = try await fill(tier)
    let removed = try await tier.purge(purges.add(try url("https://shop.example/a/0.jpg")))
    // Two sources with two variants each
    #expect(removed == 6)
    #expect(entryCount() == count - 6)
    #expect(await found(in: tier) == count - 6)
    #expect(tier.figures.entries == count - 6)
    #expect(tier.figures.purged == 6)
    #expect(tier.figures.purgesPending == 0)
    // The journal keeps only the number.
    try await eventually { notes()?.last == purges.generation }
    #expect(notes()?.purges == [])
    try await eventually { tier.figures.bytes == TemporaryFolder.diskUsage(of: cache) }
    // A purge without entries removes nothing.
    #expect(try await tier.purge(purges.add(try url("https://shop.example/none"))) == 0)
  }

  @Test func `a URL purge drops pending writes unless they were loaded after it`()
    async throws
  {
    let parts = try DiskEngine(folder, purges: purges)
    parts.store.scan { false }
    let old = [Self.one, Self.one + " w=1"].map { Sample.variant($0 + " h=1", generation: 0) }
    for variant in old { #expect(parts.storeEntry(.variant(variant))) }
    let purge = purges.add(try url(Self.one))
    let new = Sample.variant(Self.one + " w=3", generation: purge.number)
    #expect(parts.storeEntry(.variant(new)))
    // When it is purged
    #expect(try await parts.purge(purge, of: try SourceURL(parsing: Self.one)) == old.count)
    // Then older entries are not found, not written, and refused
    for variant in old {
      #expect(await parts.find(variant.key) == nil)
      #expect(!parts.storeEntry(.variant(variant)))
    }
    parts.threads.release()
    #expect(parts.threads.finish(within: .seconds(10)))
    #expect(entryCount() == 1)
    #expect(parts.store.pending.isEmpty)
    guard
      case .found = EntryPrefix.read(
        parts.store.folder.file(.variant, of: EntryDigest(of: new.key)))
    else {
      Issue.record("the new one is not there")
      return
    }
  }

  @Test func `before the index is complete, a URL purge finds files by name`() async throws {
    let first = try open()
    let count = try await fill(first)
    #expect(await first.shutDown(within: .seconds(10)))
    let parts = try DiskEngine(folder, purges: purges)
    try parts.sweeper.start()
    let text = "https://shop.example/a/0.jpg"
    let removed = try await parts.purge(purges.add(try url(text)), of: try SourceURL(parsing: text))
    #expect(removed == 6)
    #expect(entryCount() == count - 6)
    // Only a complete index proves that there are no more.
    #expect(notes()?.purges == purges.unfinished && purges.unfinishedCount == 1)
    parts.store.scan { false }
    #expect(parts.store.index.count == count - 6)
    parts.sweeper.begin()
    try await eventually { notes()?.purges == [] }
    #expect(purges.unfinished.isEmpty)
    parts.sweeper.stop()
    #expect(parts.sweeper.waitForEnd(within: .seconds(10)))
    #expect(parts.store.space.bytes == TemporaryFolder.diskUsage(of: cache))
    #expect(parts.threads.finish(within: .seconds(10)))
  }

  @Test func `a file that a URL purge cannot unlink becomes a tombstone and stays in the journal`()
    async throws
  {
    let tier = try open()
    try await fill(tier, with: [Self.one])
    // Given a directory in place of a file, which unlink cannot remove
    let path = tier.path(of: CacheKey(text: Self.one))
    unlink(path)
    mkdir(path, 0o700)
    let purge = purges.add(try url(Self.one))
    #expect(try await tier.purge(purge) == 3)
    #expect(await tier.source(for: CacheKey(text: Self.one)) == nil)
    #expect(notes()?.purges == [purge])
    #expect(tier.figures.purgesPending == 1)
    // When the removal is possible, and another purge starts a sweep
    rmdir(path)
    _ = try await tier.purge(purges.add(.tag("none")))
    // Then the purge is carried out.
    try await eventually { tier.figures.purgesPending == 0 }
    #expect(tier.figures.entries == 0)
    try await eventually { notes()?.purges == [] }
  }

  @Test(arguments: [
    ("prefix", "https://shop.example/a/", 4), ("host", "shop.example", 6), ("tag", "all", 6),
    ("host", "*", 12), ("everything", "", 12), ("tag", "none", 0),
  ])
  func `a purge applies at once, and a sweep removes its files later`(
    kind: String, value: String, sources: Int
  ) async throws {
    let tier = try open()
    let count = try await fill(tier)
    let purge = purges.add(try PurgesTests.scope(kind, value: value))
    let removed = try await tier.purge(purge)
    #expect(removed == (kind == "everything" ? count : nil))
    #expect(await found(in: tier) == count - sources * 3)
    try await eventually { tier.figures.purgesPending == 0 && notes()?.purges == [] }
    #expect(entryCount() == count - sources * 3)
    #expect(tier.figures.purged == sources * 3)
    #expect(tier.figures.entries == count - sources * 3)
    // Newer entries are kept, and older ones are not.
    #expect(purges.covers(CacheKey(text: Self.texts[0]), generation: 0) == (sources > 0))
    try await fill(tier, generation: purge.number)
    #expect(await found(in: tier) == count)
    try await tier.clear()
    try await fill(tier, generation: purge.number - 1)
    #expect(await found(in: tier) == count - sources * 3)
  }

  @Test func `an unfinished purge applies from the start of the next run and continues`()
    async throws
  {
    let first = try open()
    try await fill(first)
    #expect(await first.shutDown(within: .seconds(10)))
    // Given a sweep that stops halfway, as when the process ends
    let halfway = Purges(filter: PurgesTests.filter)
    let host = halfway.add(.host(try #require(HostPattern("shop.example"))))
    let prefix = halfway.add(.prefix(try SourceURL(parsing: "https://other.example/b/")))
    let url = halfway.add(try url("https://other.example/a/6.jpg"))
    do {
      let parts = try DiskEngine(folder, purges: halfway)
      parts.store.scan { false }
      var notes = PurgeJournal()
      notes.purges = halfway.unfinished
      try parts.store.writeJournal(notes)
      var left = 12
      let result = parts.store.sweep(halfway.unfinished) {
        left -= 1
        return left < 0
      }
      #expect(!result.isComplete)
      #expect(parts.threads.finish(within: .seconds(10)))
    }
    #expect(entryCount() > 3)
    // When the next run begins
    let second = try open()
    // Then no purged entry is found, with or without the index.
    #expect(await found(in: second) == 3)
    try await eventually { second.figures.purgesPending == 0 && self.notes()?.purges == [] }
    #expect(entryCount() == 3)
    #expect(second.figures.entries == 3)
    #expect(second.figures.bytes == TemporaryFolder.diskUsage(of: cache))
    for purge in [host, prefix, url] { #expect(purge.number <= purges.generation) }
  }

  @Test func `an entry loaded after a purge survives the restart that continues the purge`()
    async throws
  {
    let purge = purges.add(.everything)
    let first = try open()
    try await fill(first, with: [Self.one], generation: purge.number)
    try await fill(first, with: [Self.one + "x"], generation: purge.number)
    #expect(await first.shutDown(within: .seconds(10)))
    try folder.write("cache/purges", bytes: Array("\(purge.number) everything\n".utf8))
    let second = try open(purges: Purges())
    #expect(await found(in: second, of: [Self.one, Self.one + "x"]) == 6)
    try await eventually { notes()?.purges == [] }
    #expect(entryCount() == 6)
  }

  @Test func `damaged journal lines are logged, and the valid ones apply`() async throws {
    let first = try open()
    let count = try await fill(first)
    #expect(await first.shutDown(within: .seconds(10)))
    try folder.write("cache/purges", bytes: Array("xx host\n17 host shop.example\n".utf8))
    let logFile = folder.path + "/log"
    let descriptor = Glibc.open(logFile, O_RDWR | O_CREAT, 0o600)
    defer { close(descriptor) }
    let second = try open(log: Log(level: .info, descriptor: descriptor))
    #expect(await found(in: second) == count - 6 * 3)
    await second.shutDown(within: .seconds(10))
    let text = String(decoding: try #require(FileRegion(logFile)).bytes, as: UTF8.self)
    #expect(text.split(separator: "\n").count { $0.contains("damaged line") } == 1)
  }

  @Test func `a purge that cannot be recorded is an error and still applies to this run`()
    async throws
  {
    let tier = try open()
    let count = try await fill(tier)
    // Given a folder without write access
    rmdir(cache + "/tmp")
    close(creat(cache + "/tmp", 0o600))
    for scope in [PurgeScope.host(try #require(HostPattern("shop.example"))), .everything] {
      let purge = purges.add(scope)
      do {
        _ = try await tier.purge(purge)
        Issue.record("written down")
      } catch {
        guard case .internal = error else {
          Issue.record("\(error)")
          return
        }
      }
      #expect(await found(in: tier) == (scope == .everything ? 0 : count - 6 * 3))
      try await eventually { tier.figures.purgesPending == 0 }
      #expect(entryCount() == (scope == .everything ? 0 : count - 6 * 3))
    }
    #expect(notes() == nil)
  }

  @Test func `an unreadable purge journal prevents the tier from starting`() throws {
    mkdir(cache, 0o700)
    mkdir(cache + "/purges", 0o700)
    #expect {
      _ = try open()
    } throws: { error in
      guard case DiskTierError.unusable(_, let reason) = error else { return false }
      return reason.contains("purge journal")
    }
  }

  @Test func `a disabled tier completes purges, and one that was shut down throws`()
    async throws
  {
    let off = try DiskTier(
      Sample.configuration(folder, limit: 0), purges: purges, log: .silent)
    #expect(try await off.purge(purges.add(.everything)) == 0)
    #expect(try await off.purge(purges.add(try url(Self.one))) == 0)
    #expect(try await off.clear() == 0)
    #expect(await off.look(for: CacheKey(text: Self.one)) == nil)
    #expect(purges.unfinished.isEmpty)
    let ended = try open()
    try await fill(ended, with: [Self.one])
    await ended.shutDown(within: .seconds(10))
    for scope in [PurgeScope.everything, .tag("all"), try url(Self.one)] {
      await #expect(throws: ImageError.self) { try await ended.purge(purges.add(scope)) }
    }
    await #expect(throws: ImageError.self) { try await ended.clear() }
  }
}

extension DiskEngine {
  /// Creates the parts of a tier without an index and without the threads that build it. Writes
  /// wait until they are allowed.
  init(_ folder: TemporaryFolder, purges: Purges) throws {
    let configuration = Sample.configuration(folder)
    let store = DiskStore(
      folder: try DiskFolder(path: folder.path + "/cache"), configuration: configuration,
      purges: purges, log: .silent, clock: { .now })
    self.init(
      store: store, threads: try DiskEngine.threads(configuration),
      maintenance: DiskMaintenance(store: store, configuration: configuration),
      sweeper: DiskSweeper(store: store, cleared: nil, interval: .seconds(600)))
  }
}
