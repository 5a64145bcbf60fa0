// DiskFaultTests: the disk tier when system calls fail.

import Core
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Caching

@Suite(.onOwnThreads) final class DiskFaultTests: DiskFolderTests {
  @Test
  func `a cache folder that becomes unwritable is logged once and used again when it recovers`()
    async throws
  {
    // Given a tier whose folder turns into a file.
    let log = try LogFile(folder)
    let tier = try open(log: log.log)
    // After the first clean, which would recreate the folder.
    await tier.clean()
    TemporaryFolder.remove(cache)
    close(creat(cache, 0o600))
    // When entries are stored, then they are not kept, and one line is logged.
    for number in 0..<5 {
      await tier.keep(Sample.variant(number, bytes: Sample.bytes(100)))
      #expect(await tier.variant(for: Sample.variantKey(number)) == nil)
    }
    #expect(tier.figures.failures >= 5)
    // When the folder is usable again, then the tier uses it.
    unlink(cache)
    await tier.keep(Sample.variant(1, bytes: Sample.bytes(100)))
    #expect(await tier.variant(for: Sample.variantKey(1)) != nil)
    await tier.shutDown(within: .seconds(10))
    #expect(try log.count("cannot write to the cache folder") == 1)
    #expect(try log.count("can write to the cache folder again") == 1)
  }

  @Test func `an entry that cannot be unlinked is a miss, and a later clean removes it`()
    async throws
  {
    // Given a directory in place of an entry, which unlink cannot remove.
    let tier = try open()
    await tier.keep(Sample.variant(1, bytes: Sample.bytes(100)))
    let path = tier.path(of: Sample.variantKey(1))
    unlink(path)
    mkdir(path, 0o700)
    // When the entry is removed, then it is not found, and still counts.
    await tier.remove(Sample.variantKey(1))
    #expect(await tier.variant(for: Sample.variantKey(1)) == nil)
    #expect(tier.figures.entries == 1)
    #expect(tier.figures.failures == 1)
    // When the removal is possible, then a clean performs it.
    rmdir(path)
    await tier.clean()
    #expect(tier.figures.entries == 0)
    #expect(tier.figures.bytes == TemporaryFolder.diskUsage(of: cache))
  }

  @Test func `a folder that cannot be read completely is an error`() throws {
    // Given a folder whose descriptor refers to another file when it is read
    for number in 0..<3 { try folder.write("\(number)", bytes: [1]) }
    let stream = try #require(opendir(folder.path))
    defer { closedir(stream) }
    let other = Glibc.open("/dev/null", O_RDONLY | O_CLOEXEC)
    #expect(dup2(other, dirfd(stream)) >= 0)
    close(other)
    // Then
    #expect(throws: SystemError(ENOTDIR)) { try DiskFolder.names(in: stream) }
    #expect(try DiskFolder.contents(of: folder.path).sorted() == ["0", "1", "2"])
  }

  @Test(
    .enabled(if: Mount.isAllowed, "this process may not mount a small file system"),
    arguments: ["size=600k", "size=16m,nr_inodes=70"])
  func `a full disk is logged once, receives no futile writes, and is used again when it has room`(
    options: String
  ) async throws {
    // Given a file system with less room, or fewer inodes, than the tier may use.
    let mount = try Mount.small(options, over: cache)
    let log = try LogFile(folder)
    let tier = try open(log: log.log)
    // When more is stored than fits.
    for number in 0..<60 {
      tier.store(Sample.variant(number, bytes: Sample.bytes(20_000, seed: number)))
    }
    #expect(await tier.quiet())
    // Then entries that fit are kept, and the rest are misses.
    #expect(tier.figures.stores > 10)
    #expect(tier.figures.failures > 10)
    var kept: [Int] = []
    for number in 0..<60 {
      guard let found = await tier.variant(for: Sample.variantKey(number)) else { continue }
      #expect(found.bytes == Sample.bytes(20_000, seed: number))
      kept.append(number)
    }
    #expect(tier.figures.stores == kept.count)
    #expect(tier.figures.entries == kept.count)
    #expect(TemporaryFolder.files(below: cache + "/tmp").isEmpty)
    #expect(tier.figures.bytes == TemporaryFolder.diskUsage(of: cache))
    // A tier does not write to a disk that it knows is full: the folder's time would show it. The
    // last gap may still be filled, because two threads write.
    for number in 100..<200 {
      await tier.keep(Sample.variant(number, bytes: Sample.bytes(20_000)))
      if await tier.variant(for: Sample.variantKey(number)) == nil { break }
    }
    let before = modification(cache + "/tmp")
    await tier.keep(Sample.variant(99, bytes: Sample.bytes(20_000)))
    #expect(await tier.variant(for: Sample.variantKey(99)) == nil)
    #expect(modification(cache + "/tmp") == before)
    // When there is room again, then it is used.
    try mount.change("size=32m,nr_inodes=1000")
    await tier.keep(Sample.variant(99, bytes: Sample.bytes(20_000)))
    #expect(await tier.variant(for: Sample.variantKey(99)) != nil)
    await tier.shutDown(within: .seconds(10))
    #expect(try log.count("cannot write to the cache folder") == 1)
    #expect(try log.count("can write to the cache folder again") == 1)
  }

  @Test(.enabled(if: Mount.isAllowed, "this process may not mount anything read-only"))
  func `a read-only file system is still read, and written to again once it allows it`()
    async throws
  {
    let log = try LogFile(folder)
    let tier = try open(log: log.log)
    for number in 0..<5 { tier.store(Sample.variant(number, bytes: Sample.bytes(3_000))) }
    #expect(await tier.quiet())
    var mount: Mount? = try Mount.readOnly(cache)
    // Entries are found, even when their access time is due to be written.
    clock.advance(by: 1_000)
    for number in 0..<5 { #expect(await tier.variant(for: Sample.variantKey(number)) != nil) }
    // New entries are not kept. Removed and replaced entries are not found.
    for number in 10..<14 { tier.store(Sample.variant(number, bytes: Sample.bytes(100))) }
    tier.store(Sample.variant(1, bytes: Sample.bytes(100)))
    await tier.remove(Sample.variantKey(0))
    #expect(await tier.quiet())
    for number in [0, 1, 10, 13] {
      #expect(await tier.variant(for: Sample.variantKey(number)) == nil)
    }
    #expect(tier.figures.failures >= 7)
    mount = nil
    #expect(mount == nil)
    // When the disk is writable again, then it is used, and a clean repeats the failed removals.
    await tier.keep(Sample.variant(10, bytes: Sample.bytes(100)))
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

  @Test func `lost permission is counted, logged once, and writes resume when it returns`() throws {
    // Given a store on this thread, because the permission belongs to a thread.
    let log = try LogFile(folder)
    let store = DiskStore(
      folder: try DiskFolder(path: cache), configuration: Sample.configuration(folder),
      log: log.log, clock: { .now })
    store.scan { false }
    func write(_ number: Int) {
      store.put(.variant(Sample.variant(number, bytes: Sample.bytes(9))))
    }
    func read(_ number: Int) -> DiskEntry? {
      let key = Sample.variantKey(number)
      return store.read(key, digest: EntryDigest(of: key))
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

  @Test func `entries that could not be read at the start are counted in a later scan`() throws {
    func makeStore() throws -> DiskStore {
      DiskStore(
        folder: try DiskFolder(path: cache), configuration: Sample.configuration(folder),
        log: .silent, clock: { .now })
    }
    let first = try makeStore()
    first.scan { false }
    for number in 0..<5 {
      first.put(.variant(Sample.variant(number, bytes: Sample.bytes(9))))
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

  @Test func `an empty purge journal, as a power failure may leave it, contains no purges`() throws
  {
    mkdir(cache, 0o700)
    try folder.write("cache/purges", bytes: [])
    let store = DiskStore(
      folder: try DiskFolder(path: cache), configuration: Sample.configuration(folder),
      log: .silent, clock: { .now })
    #expect(try store.readJournal() == PurgeJournal())
  }

  /// Nanoseconds since 1970.
  private func modification(_ path: String) -> Int {
    var status = stat()
    #expect(lstat(path, &status) == 0)
    return status.st_mtim.tv_sec * 1_000_000_000 + status.st_mtim.tv_nsec
  }

  /// Runs `body` without any permission for a folder. Root ignores the folder's mode, so the
  /// calling thread takes another user id for file access.
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

/// setfsuid(2), for this thread alone and with root's rights over files. Swift's Glibc lacks it.
@_silgen_name("setfsuid")
private func setFileSystemUser(_ id: CUnsignedInt) -> CInt

/// The log of a tier.
private struct LogFile {
  let path: String
  let log: Log

  init(_ folder: TemporaryFolder) throws {
    path = folder.path + "/log"
    // Stays open, because the log uses it until the process ends.
    let descriptor = Glibc.open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    try #require(descriptor >= 0)
    log = Log(level: .info, descriptor: descriptor)
  }

  /// Returns the number of lines that contain a text.
  func count(_ text: String) throws -> Int {
    let lines = String(decoding: try #require(FileRegion(path)).bytes, as: UTF8.self)
    return lines.split(separator: "\n").count { $0.contains(text) }
  }
}
