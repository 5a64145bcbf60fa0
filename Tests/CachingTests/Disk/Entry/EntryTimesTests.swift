// EntryTimesTests: entries whose times cannot be set.

import Core
import Glibc
import TestSupport
import Testing

@testable import Caching

@Suite(.onOwnThreads) struct EntryTimesTests {
  private let folder: TemporaryFolder
  private var cache: String { folder.path + "/cache" }

  init() throws { folder = try TemporaryFolder() }

  @Test func `an entry whose times cannot be set is not stored`() throws {
    // Given a store that reads the clock just before it sets the times of a file
    let isFailing = Lock(false)
    let temporary = cache + "/tmp/"
    let store = DiskStore(
      folder: try DiskFolder(path: cache), configuration: Sample.configuration(folder),
      log: .silent,
      clock: {
        if isFailing.withLock({ $0 }) { Self.disable(temporary) }
        return .now
      })
    store.scan { false }
    let key = Sample.variantKey(1)
    let digest = EntryDigest(of: key)
    func write() {
      store.put(.variant(Sample.variant(1, bytes: Sample.bytes(9))))
    }
    write()
    #expect(store.read(key, digest: digest) != nil)
    // When
    isFailing.withLock { $0 = true }
    write()
    isFailing.withLock { $0 = false }
    // Then the entry is a miss, and the one before is gone, too
    #expect(store.counts.failures.value == 1)
    #expect(store.read(key, digest: digest) == nil)
    #expect(TemporaryFolder.files(below: cache + "/v").isEmpty)
    #expect(TemporaryFolder.files(below: cache + "/tmp").isEmpty)
    #expect(store.space.bytes == TemporaryFolder.diskUsage(of: cache))
    // When times can be set again
    write()
    // Then
    #expect(store.read(key, digest: digest) != nil)
  }

  /// Makes descriptors below a folder name a file only. Setting times through one fails.
  private static func disable(_ folder: String) {
    // `O_PATH` of <fcntl.h>, which Swift does not import.
    let nameOnly: CInt = 0o10_000_000
    for name in (try? DiskFolder.contents(of: "/proc/self/fd")) ?? [] {
      var target = [CChar](repeating: 0, count: Int(PATH_MAX))
      let length = readlink("/proc/self/fd/" + name, &target, target.count)
      guard let descriptor = CInt(name), length > 0 else { continue }
      let path = String(decoding: target[..<length].map(UInt8.init(bitPattern:)), as: UTF8.self)
      guard path.hasPrefix(folder) else { continue }
      let other = open(path, nameOnly | O_CLOEXEC)
      #expect(dup2(other, descriptor) == descriptor)
      close(other)
    }
  }
}
