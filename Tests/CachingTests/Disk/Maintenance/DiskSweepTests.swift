// DiskSweepTests: look-ups, writes, other purges and a clean during a sweep.

import Core
import Glibc
import TestSupport
import Testing

@testable import Caching

@Suite(.onOwnThreads) final class DiskSweepTests: DiskFolderTests {
  static func text(_ number: Int) -> String { "https://images.example/\(number).jpg w=1" }

  static func digest(_ number: Int) -> EntryDigest { EntryDigest(of: CacheKey(text: text(number))) }

  /// Writes variants of the current generation, as a disk thread does.
  func fill(_ parts: DiskEngine, count: Int) throws {
    parts.store.scan { false }
    for number in 0..<count {
      let variant = Sample.variant(Self.text(number), generation: purges.generation)
      let ticket = PendingWrites.Ticket(storing: .variant(variant))
      _ = parts.store.pending.add(ticket)
      parts.store.write(try #require(parts.store.pending.claim(variant.key, onlyRemoval: false)))
    }
    #expect(fileCount("v") == count)
  }

  @Test
  func
    `during a paused sweep of 100,000 entries, look-ups, stores, removals and a clean proceed`()
    async throws
  {
    let tier = try open()
    #expect(await tier.ready())
    for number in 0..<200 { tier.store(Sample.variant(Self.text(number), generation: 0)) }
    #expect(await tier.quiet())
    // Given a large index, most of whose entries have no file
    let parts = try #require(tier.parts)
    guard case .present(let record) = parts.store.index.lookUp(Self.digest(0)) else {
      Issue.record("not kept")
      return
    }
    for number in 200..<100_000 {
      let digest = Self.digest(number)
      parts.store.index.shard(of: digest).table.withLock { $0.records[digest] = record }
    }
    let purge = purges.add(.prefix(try SourceURL(parsing: "https://images.example/1")))
    // When a sweep is halfway
    let gate = Semaphore()
    let steps = Lock(0)
    let outcome = Lock<DiskStore.SweepResult?>(nil)
    try OwnThread.start(name: "sweep", rank: .foreground) { [purges] in
      let result = parts.store.sweep(purges.unfinished) {
        let step = steps.withLock { steps in
          steps += 1
          return steps
        }
        if step == 50_000 { gate.wait() }
        return false
      }
      outcome.withLock { $0 = result }
    }
    try await eventually { steps.withLock { $0 } == 50_000 }
    // Then all other operations continue.
    for number in 0..<200 {
      let key = CacheKey(text: Self.text(number))
      let isPurged = "\(number)".hasPrefix("1")
      #expect((await tier.variant(for: key) == nil) == isPurged)
      #expect((await tier.look(for: key) == nil) == isPurged)
    }
    let new = Sample.variant(Self.text(1), generation: purge.number)
    #expect(tier.store(new))
    await tier.remove(CacheKey(text: Self.text(2)))
    #expect(await tier.clean() == CleanReport())
    #expect(await tier.quiet())
    #expect(outcome.withLock { $0 } == nil)
    gate.post()
    try await eventually { outcome.withLock { $0 } != nil }
    #expect(outcome.withLock { $0?.isComplete } == true)
    #expect(await tier.variant(for: new.key) != nil)
    let meant = (0..<200).count { "\($0)".hasPrefix("1") }
    #expect(fileCount("v") == 200 - meant + 1 - 1)
  }

  @Test
  func `an entry placed just before a purge is removed, and one placed after it is refused`()
    throws
  {
    let parts = try DiskEngine(folder, purges: purges)
    parts.store.scan { false }
    let variants = (0..<2).map { Sample.variant(Self.text($0), generation: 0) }
    let tickets = variants.map { PendingWrites.Ticket(storing: .variant($0)) }
    for ticket in tickets {
      _ = parts.store.pending.add(ticket)
      #expect(parts.store.pending.claim(ticket.key, onlyRemoval: false) === ticket)
    }
    // Given an entry placed just before the purge, and one placed just after the sweep
    guard case .placed = try parts.store.place(.variant(variants[0]), ticket: tickets[0]) else {
      Issue.record("not placed")
      return
    }
    let purge = purges.add(.prefix(try SourceURL(parsing: "https://images.example/")))
    #expect(parts.store.sweep([purge]) { false }.removed == 1)
    purges.finish(purge)
    guard case .unwanted = try parts.store.place(.variant(variants[1]), ticket: tickets[1]) else {
      Issue.record("placed")
      return
    }
    #expect(fileCount("v") == 0)
    #expect(parts.store.space.bytes == TemporaryFolder.diskUsage(of: cache))
  }

  @Test func `a file replaced after it was read is kept`() throws {
    let parts = try DiskEngine(folder, purges: purges)
    try fill(parts, count: 1)
    let purge = purges.add(.everything)
    let key = CacheKey(text: Self.text(0))
    let path = parts.store.folder.file(.variant, of: EntryDigest(of: key))
    guard case .found(let old) = EntryPrefix.read(path) else {
      Issue.record("not found")
      return
    }
    let new = PendingWrites.Ticket(
      storing: .variant(Sample.variant(key.text, generation: purge.number)))
    _ = parts.store.pending.add(new)
    parts.store.write(new)
    #expect(!parts.store.removeFile(new.digest, kind: .variant, inode: old.inode))
    #expect(parts.store.sweep([purge]) { false }.removed == 0)
    #expect(fileCount("v") == 1)
  }

  @Test func `a file that cannot be read keeps the purge open, and a damaged one is removed`()
    throws
  {
    let parts = try DiskEngine(folder, purges: purges)
    try fill(parts, count: 3)
    let paths = (0..<3).map {
      parts.store.folder.file(.variant, of: Self.digest($0))
    }
    // Given a damaged file, and a symbolic link to itself, which cannot be opened
    let descriptor = Glibc.open(paths[0], O_WRONLY)
    #expect(pwrite(descriptor, "x", 1, 50) == 1)
    close(descriptor)
    unlink(paths[1])
    symlink(paths[1], paths[1])
    let purge = purges.add(.tag("none"))
    #expect(!parts.store.sweep([purge]) { false }.isComplete)
    #expect(parts.store.counts.damaged.value == 1)
    #expect(access(paths[0], F_OK) != 0)
    #expect(access(paths[2], F_OK) == 0)
    unlink(paths[1])
    #expect(parts.store.sweep([purge]) { false }.isComplete)
  }

  @Test func `restored URL purges read only files with matching names`() throws {
    let parts = try DiskEngine(folder, purges: purges)
    try fill(parts, count: 3)
    // Given a file that a read would find damaged
    let path = parts.store.folder.file(.variant, of: Self.digest(0))
    #expect(truncate(path, 10) == 0)
    let purge = purges.add(.url(try SourceURL(parsing: "https://images.example/1.jpg")))
    let result = parts.store.sweep([purge]) { false }
    #expect(result.isComplete && result.removed == 1)
    #expect(parts.store.counts.damaged.value == 0)
    #expect(fileCount("v") == 2)
  }

  @Test func `concurrent stores, look-ups and purges never return a purged entry`()
    async throws
  {
    let tier = try open()
    #expect(await tier.ready())
    await withTaskGroup(of: Void.self) { group in
      for task in 0..<8 {
        group.addTask { [purges] in
          var random = SeededGenerator(seed: UInt64(task))
          for step in 0..<120 {
            let number = Int.random(in: 0..<20, using: &random)
            let key = CacheKey(text: Self.text(number))
            switch Int.random(in: 0..<40, using: &random) {
            case 0..<20:
              // Like a load: it reads the generation first, and stores later.
              let generation = purges.generation
              if step % 3 == 0 { await Task.yield() }
              let bytes = Sample.bytes(Int.random(in: 1..<5_000, using: &random), seed: step)
              tier.store(Sample.variant(key.text, generation: generation, bytes: bytes))
            case 20:
              let prefix = "https://images.example/\(number % 3)"
              guard let url = try? SourceURL(parsing: prefix) else { continue }
              let purge = purges.add(.prefix(url))
              #expect((try? await tier.purge(purge)) == .some(nil))
            case 21..<24:
              guard let url = try? SourceURL(parsing: key.url) else { continue }
              let purge = purges.add(.url(url))
              #expect((try? await tier.purge(purge)) != nil)
            case 24: _ = try? await tier.purge(purges.add(.everything))
            case 25: _ = try? await tier.clear()
            default:
              // Every entry found now was loaded after the last purge that had finished before.
              let last = purges.unfinished.last { $0.scope.matches(key, filter: CacheKeyFilter()) }
              let isAtOnce = step % 2 == 0
              let found =
                isAtOnce ? tier.variantAtOnce(for: key) { _ in true } : await tier.variant(for: key)
              if let found, let last { #expect(found.info.generation >= last.number) }
              if let kept = await tier.look(for: key), let last {
                #expect(kept.generation >= last.number)
              }
            }
          }
        }
      }
    }
    #expect(await tier.quiet())
    try await eventually { tier.figures.purgesPending == 0 }
    // No entry left on disk is covered by any purge.
    for path in TemporaryFolder.files(below: cache + "/v") {
      guard case .found(let entry) = EntryPrefix.read(path) else {
        Issue.record("\(path) is damaged")
        continue
      }
      #expect(!purges.covers(entry.key, generation: entry.generation))
    }
    #expect(tier.figures.entries == fileCount("v"))
    await tier.shutDown(within: .seconds(10))
    #expect(tier.figures.bytes == TemporaryFolder.diskUsage(of: cache))
  }
}
