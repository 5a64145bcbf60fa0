// DiskFaultTests: what happens to the disk tier when the disk says no.

import Glibc
import Model
import Platform
import Synchronization
import Telemetry
import TestSupport
import Testing

@testable import Caching

struct DiskFaultTests {
  let folder: TemporaryFolder
  let clock = TestClock()
  var cache: String { folder.path + "/cache" }

  init() throws { folder = try TemporaryFolder() }

  func open(log: Log = .silent) throws -> DiskTier {
    try DiskTier(Sample.configuration(folder), log: log) { [clock] in clock.now }
  }

  @Test func `a folder that cannot be written to is survived, logged once, and used again`()
    async throws
  {
    // Given a tier whose folder turns into a file.
    let log = try LogFile(folder)
    let tier = try DiskTier(Sample.configuration(folder), log: log.log)
    // Past the clean of the start, which would make the folder anew.
    await tier.clean()
    TemporaryFolder.remove(cache)
    close(creat(cache, 0o600))
    // When entries are stored, then they are not kept, and one line says so.
    for number in 0..<5 {
      tier.store(Sample.variant(number, Sample.bytes(100)))
      #expect(await tier.quiet())
      #expect(await tier.variant(for: Sample.variantKey(number)) == nil)
    }
    #expect(tier.figures.failures >= 5)
    // When it can be used again, then it is.
    unlink(cache)
    tier.store(Sample.variant(1, Sample.bytes(100)))
    #expect(await tier.quiet())
    #expect(await tier.variant(for: Sample.variantKey(1)) != nil)
    await tier.shutDown(within: .seconds(10))
    #expect(try log.count("cannot write to the cache folder") == 1)
    #expect(try log.count("can write to the cache folder again") == 1)
  }

  @Test func `what cannot be removed is a miss all the same, and goes with a later clean`()
    async throws
  {
    // Given an entry in whose place is a folder, which no unlink removes.
    let tier = try open()
    tier.store(Sample.variant(1, Sample.bytes(100)))
    #expect(await tier.quiet())
    let path = tier.path(of: Sample.variantKey(1))
    unlink(path)
    mkdir(path, 0o700)
    // When it is removed, then it is not found, and still counts.
    await tier.remove(Sample.variantKey(1))
    #expect(await tier.variant(for: Sample.variantKey(1)) == nil)
    #expect(tier.figures.entries == 1)
    #expect(tier.figures.failures == 1)
    // When it can be removed, then a clean does it.
    rmdir(path)
    await tier.clean()
    #expect(tier.figures.entries == 0)
    #expect(tier.figures.bytes == TemporaryFolder.diskUsage(of: cache))
    await tier.shutDown(within: .seconds(10))
  }

  @Test func `a folder that fails while it is read is an error and no shorter folder`() throws {
    // Given a folder whose descriptor is another file's by the time it is read
    for number in 0..<3 { try folder.write("\(number)", [1]) }
    let stream = try #require(opendir(folder.path))
    defer { closedir(stream) }
    let other = Glibc.open("/dev/null", O_RDONLY | O_CLOEXEC)
    #expect(dup2(other, dirfd(stream)) >= 0)
    close(other)
    // Then
    #expect(throws: SystemError(ENOTDIR)) { try DiskFolder.names(in: stream) }
    #expect(try DiskFolder.contents(of: folder.path).sorted() == ["0", "1", "2"])
  }

  @Test func `a disk that does not answer is a miss after a while`() async {
    let reads = PendingReads(timeout: .milliseconds(20))
    let never = Lock<PendingReads.Read?>(nil)
    let entry = await reads.wait { read in never.withLock { $0 = read } }
    #expect(entry == nil)
    never.withLock { $0 }?.finish(nil)
    reads.end()
    #expect(await reads.wait { _ in Issue.record("started after the end") } == nil)
  }

  @Test(
    .enabled(if: Mount.isAllowed, "this process may not mount a small file system"),
    arguments: ["size=600k", "size=16m,nr_inodes=70"])
  func `a full disk is survived, logged once, not written to in vain, and used again`(
    options: String
  ) async throws {
    // Given a file system with less room, or fewer inodes, than the tier may take.
    let mount = try Mount.small(options, over: cache)
    let log = try LogFile(folder)
    let tier = try open(log: log.log)
    // When more comes than it holds.
    for number in 0..<60 { tier.store(Sample.variant(number, Sample.bytes(20_000, seed: number))) }
    #expect(await tier.quiet())
    // Then what has room is kept, and the rest is a miss.
    #expect(tier.figures.stores > 10)
    #expect(tier.figures.failures > 10)
    var kept: [Int] = []
    for number in 0..<60 {
      guard let found = await tier.variant(for: Sample.variantKey(number)) else { continue }
      #expect(found.bytes == Sample.bytes(20_000, seed: number))
      kept.append(number)
    }
    #expect(kept.count == tier.figures.stores)
    #expect(tier.figures.entries == kept.count)
    #expect(TemporaryFolder.files(below: cache + "/tmp").isEmpty)
    #expect(tier.figures.bytes == TemporaryFolder.diskUsage(of: cache))
    // A disk that is known to be full is not written to: a folder's time tells of files made in it. The last gap may be
    // filled yet, since two were written at a time.
    for number in 100..<200 {
      tier.store(Sample.variant(number, Sample.bytes(20_000)))
      #expect(await tier.quiet())
      if await tier.variant(for: Sample.variantKey(number)) == nil { break }
    }
    let before = modification(cache + "/tmp")
    tier.store(Sample.variant(99, Sample.bytes(20_000)))
    #expect(await tier.quiet())
    #expect(await tier.variant(for: Sample.variantKey(99)) == nil)
    #expect(modification(cache + "/tmp") == before)
    // When there is room again, then it is used.
    try mount.change("size=32m,nr_inodes=1000")
    tier.store(Sample.variant(99, Sample.bytes(20_000)))
    #expect(await tier.quiet())
    #expect(await tier.variant(for: Sample.variantKey(99)) != nil)
    await tier.shutDown(within: .seconds(10))
    #expect(try log.count("cannot write to the cache folder") == 1)
    #expect(try log.count("can write to the cache folder again") == 1)
  }

  @Test(.enabled(if: Mount.isAllowed, "this process may not mount anything read-only"))
  func `a file system that turned read-only is read from, and used again`() async throws {
    let log = try LogFile(folder)
    let tier = try open(log: log.log)
    for number in 0..<5 { tier.store(Sample.variant(number, Sample.bytes(3_000))) }
    #expect(await tier.quiet())
    var mount: Mount? = try Mount.readOnly(cache)
    // What is there is found, past the time when its use is to be written down.
    clock.advance(by: 1_000)
    for number in 0..<5 { #expect(await tier.variant(for: Sample.variantKey(number)) != nil) }
    // What comes is not kept, what is removed is not found, and neither is what replaces something.
    for number in 10..<14 { tier.store(Sample.variant(number, Sample.bytes(100))) }
    tier.store(Sample.variant(1, Sample.bytes(100)))
    await tier.remove(Sample.variantKey(0))
    #expect(await tier.quiet())
    for number in [0, 1, 10, 13] {
      #expect(await tier.variant(for: Sample.variantKey(number)) == nil)
    }
    #expect(tier.figures.failures >= 7)
    mount = nil
    #expect(mount == nil)
    // When it can be written to again, then it is, and a clean removes what could not be.
    tier.store(Sample.variant(10, Sample.bytes(100)))
    #expect(await tier.quiet())
    #expect(await tier.variant(for: Sample.variantKey(10)) != nil)
    await tier.clean()
    #expect(tier.figures.entries == 4)
    #expect(TemporaryFolder.files(below: cache + "/v").count == 4)
    #expect(tier.figures.bytes == TemporaryFolder.diskUsage(of: cache))
    await tier.shutDown(within: .seconds(10))
    for thing in ["write to", "remove from"] {
      #expect(try log.count("cannot \(thing) the cache folder") == 1)
      #expect(try log.count("can \(thing) the cache folder again") == 1)
    }
  }

  @Test func `permission lost and given back: counted, logged once, used again`() throws {
    // Given a store on this very thread, since the thread is what loses it.
    let log = try LogFile(folder)
    let store = DiskStore(
      folder: try DiskFolder(path: cache), configuration: Sample.configuration(folder),
      log: log.log, clock: { .now })
    store.scan { false }
    func write(_ number: Int) {
      let ticket = PendingWrites.Ticket(storing: .variant(Sample.variant(number, Sample.bytes(9))))
      _ = store.pending.add(ticket)
      store.write(ticket)
    }
    func read(_ number: Int) -> DiskEntry? {
      let key = Sample.variantKey(number)
      return store.read(key, EntryDigest(of: key))
    }
    write(1)
    #expect(read(1) != nil)
    try withoutPermission(for: cache) {
      for number in 2..<5 {
        write(number)
        #expect(read(1) == nil)
      }
    }
    #expect(store.counts.failures.value == 6)
    #expect(store.index.count == 1)
    write(2)
    #expect(read(1) != nil)
    #expect(read(2) != nil)
    for thing in ["write to", "read from"] {
      #expect(try log.count("cannot \(thing) the cache folder") == 1)
      #expect(try log.count("can \(thing) the cache folder again") == 1)
    }
  }

  @Test func `what could not be read at the start is counted once it can be`() throws {
    func makeStore() throws -> DiskStore {
      DiskStore(
        folder: try DiskFolder(path: cache), configuration: Sample.configuration(folder),
        log: .silent, clock: { .now })
    }
    let first = try makeStore()
    first.scan { false }
    for number in 0..<5 {
      let ticket = PendingWrites.Ticket(storing: .variant(Sample.variant(number, Sample.bytes(9))))
      _ = first.pending.add(ticket)
      first.write(ticket)
    }
    first.folder.unlock()
    let second = try makeStore()
    try withoutPermission(for: cache) { second.scan { false } }
    #expect(second.index.isComplete)
    #expect(second.index.count == 0)
    second.lookAfterFolder { false }
    #expect(second.index.count == 5)
    #expect(second.space.bytes == TemporaryFolder.diskUsage(of: cache))
    let isScanDue = second.isScanDue.load(ordering: .relaxed)
    #expect(!isScanDue)
  }

  @Test func `a list of purges that is empty, as a power failure may leave it, is none`() throws {
    mkdir(cache, 0o700)
    try folder.write("cache/purges", [])
    let store = DiskStore(
      folder: try DiskFolder(path: cache), configuration: Sample.configuration(folder),
      log: .silent, clock: { .now })
    #expect(try store.readJournal() == PurgeLogRecord())
  }

  /// Nanoseconds since 1970.
  private func modification(_ path: String) -> Int {
    var status = stat()
    #expect(lstat(path, &status) == 0)
    return status.st_mtim.tv_sec * 1_000_000_000 + status.st_mtim.tv_nsec
  }

  /// Runs `body` without permission for anything in a folder. Root has it whatever the folder's mode is, so the calling
  /// thread is somebody else to the file system meanwhile.
  private func withoutPermission(for path: String, _ body: () -> Void) throws {
    guard geteuid() == 0 else {
      try #require(chmod(path, 0) == 0)
      defer { chmod(path, 0o700) }
      return body()
    }
    let nobody: CUnsignedInt = 65_534
    _ = setFileSystemUser(nobody)
    defer { _ = setFileSystemUser(0) }
    body()
  }
}

/// setfsuid(2), of this thread alone and with root's rights over files; Swift's Glibc does not have it.
@_silgen_name("setfsuid")
private func setFileSystemUser(_ id: CUnsignedInt) -> CInt

/// What a tier logged.
private struct LogFile {
  let path: String
  let log: Log

  init(_ folder: TemporaryFolder) throws {
    path = folder.path + "/log"
    // Left open: the log has it as long as there is one.
    let descriptor = Glibc.open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    try #require(descriptor >= 0)
    log = Log(level: .info, descriptor: descriptor)
  }

  /// Lines that hold a text.
  func count(_ text: String) throws -> Int {
    let lines = String(decoding: try #require(FileRegion(path)).bytes, as: UTF8.self)
    return lines.split(separator: "\n").count { $0.contains(text) }
  }
}
