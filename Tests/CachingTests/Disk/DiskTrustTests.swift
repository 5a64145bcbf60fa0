// DiskTrustTests: other users cannot change the cache, and symbolic links lead nowhere.

import Core
import Glibc
import TestSupport
import Testing

@testable import Caching

@Suite(.onOwnThreads) final class DiskTrustTests: DiskFolderTests {
  /// Makes the folders that a tier has made before.
  private func makeFolders() {
    for name in ["", "/v", "/s", "/tmp"] { mkdir(cache + name, 0o700) }
  }

  /// Expects that a start and a check both refuse the folder at `path`.
  private func expectRefusal(of path: String, because reason: String) {
    let starts: [() throws -> Void] = [
      { _ = try self.open() }, { try DiskTier.check(path: self.cache) },
    ]
    for start in starts {
      let error = #expect(throws: DiskTierError.self) { try start() }
      guard case .untrusted(path, let text)? = error else {
        Issue.record("\(path): \(String(describing: error))")
        continue
      }
      #expect(text.contains(reason) && text.hasSuffix("or name another folder in disk.path"))
    }
  }

  @Test(arguments: [0o777, 0o775, 0o770, 0o722, 0o1777, 0o702] as [mode_t])
  func `a folder that other users may write to is refused`(mode: mode_t) throws {
    makeFolders()
    for name in ["", "/v", "/s", "/tmp"] {
      chmod(cache + name, mode)
      expectRefusal(of: cache + name, because: "mode \(String(mode, radix: 8))")
      chmod(cache + name, 0o700)
    }
  }

  @Test(arguments: [0o700, 0o750, 0o755] as [mode_t])
  func `a folder that other users may only read is used`(mode: mode_t) throws {
    mkdir(cache, 0o700)
    chmod(cache, mode)
    _ = try open()
  }

  @Test(.enabled(if: geteuid() == 0, "only root can give a folder away"))
  func `a folder of another user is refused`() throws {
    makeFolders()
    for name in ["", "/v"] {
      #expect(chown(cache + name, 65_534, 65_534) == 0)
      expectRefusal(of: cache + name, because: "belongs to user 65534")
      #expect(chown(cache + name, 0, 0) == 0)
    }
  }

  @Test func `a symbolic link inside the folder is refused, and one to the folder is followed`()
    throws
  {
    mkdir(folder.path + "/real", 0o700)
    mkdir(folder.path + "/elsewhere", 0o700)
    symlink(folder.path + "/real", cache)
    makeFolders()
    try DiskTier.check(path: cache)
    for name in ["v", "s", "tmp"] {
      rmdir("\(cache)/\(name)")
      symlink(folder.path + "/elsewhere", "\(cache)/\(name)")
      expectRefusal(of: "\(cache)/\(name)", because: "symbolic link")
      unlink("\(cache)/\(name)")
    }
  }

  @Test func `a link in place of an entry is not followed, and the entry is a miss`() async throws {
    // Given an entry whose file was exchanged for a link to its own bytes
    let tier = try open()
    await tier.keep(Sample.variant(1, bytes: Sample.bytes(100)))
    #expect(await tier.variant(for: Sample.variantKey(1)) != nil)
    let file = try #require(TemporaryFolder.files(below: cache + "/v").first)
    let moved = folder.path + "/moved"
    #expect(rename(file, moved) == 0 && symlink(moved, file) == 0)
    // Then
    #expect(await tier.variant(for: Sample.variantKey(1)) == nil)
  }

  @Test func `a link in place of the purge journal is not followed`() throws {
    makeFolders()
    try folder.write("purges", bytes: Array("x".utf8))
    symlink(folder.path + "/purges", cache + "/purges")
    #expect(throws: DiskTierError.self) { try open() }
  }
}
