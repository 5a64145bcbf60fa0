// UnlinkedFilesTests: files without a name.

import Glibc
import TestSupport
import Testing

@testable import Core

struct UnlinkedFilesTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func region(_ bytes: [UInt8], skipping offset: Int = 0) throws -> FileRegion {
    var file = try MemoryFile(name: "test")
    try bytes.withUnsafeBytes { try file.append($0) }
    let whole = try file.sealed()
    return FileRegion(
      owning: dup(whole.descriptor), offset: offset, count: bytes.count - offset)
  }

  private func bytes(of region: FileRegion) throws -> [UInt8] {
    try ImageBytes(contentsOf: region, mayMap: false).withUnsafeBytes { Array($0) }
  }

  private var names: [String] {
    get throws {
      let stream = try #require(opendir(folder.path))
      defer { closedir(stream) }
      var names: [String] = []
      while let entry = readdir(stream) {
        let name = withUnsafeBytes(of: entry.pointee.d_name) {
          String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
        }
        if name != "." && name != ".." { names.append(name) }
      }
      return names
    }
  }

  @Test func `a copy has the region's bytes and no name`() throws {
    let files = UnlinkedFiles(folder: folder.path, limit: 1 << 20)
    let bytes = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
    for offset in [0, 1, 4_097] {
      let copy = try files.copy(region(bytes, skipping: offset))
      #expect(try self.bytes(of: copy) == Array(bytes[offset...]))
      #expect(!copy.isInMemory)
      #expect(try names.isEmpty)
    }
  }

  @Test func `the room of all files is limited, and returned with the last reader`() throws {
    let files = UnlinkedFiles(folder: folder.path, limit: 10)
    let source = try region([1, 2, 3, 4, 5, 6])
    var first: FileRegion? = try files.copy(source)
    #expect(throws: SystemError(ENOSPC)) { try files.copy(source) }
    #expect(first?.count == 6 && files.budget.used == 6)
    first = nil
    #expect(try files.copy(source).count == 6)
    #expect(files.budget.used == 0 && files.budget.refused == 1)
  }

  @Test func `a folder that is gone is an error, and takes no room`() throws {
    let files = UnlinkedFiles(folder: folder.path + "/gone", limit: 10)
    let source = try region([1])
    #expect(throws: SystemError(ENOENT)) { try files.copy(source) }
    #expect(files.budget.used == 0)
  }
}
