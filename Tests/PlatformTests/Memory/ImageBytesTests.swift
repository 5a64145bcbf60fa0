// ImageBytesTests: tests ImageBytes and FileRegion: copying, mapping, and truncated files.

import Core
import Glibc
import Testing

struct ImageBytesTests {
  /// Returns a region of an unlinked file in the temporary folder.
  private func region(of bytes: [UInt8], offset: Int = 0, count: Int? = nil) throws -> FileRegion {
    var template = Array("/var/tmp/pictor-test-XXXXXX".utf8CString)
    let descriptor = mkstemp(&template)
    try #require(descriptor >= 0)
    unlink(template)
    try #require(write(descriptor, bytes, bytes.count) == bytes.count)
    return FileRegion(owning: descriptor, offset: offset, count: count ?? bytes.count - offset)
  }

  private func bytes(_ count: Int) -> [UInt8] {
    (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31) }
  }

  @Test(arguments: [0, 1, 100, ImageBytes.mappingThreshold - 1, ImageBytes.mappingThreshold + 7])
  func `a file is read into memory`(count: Int) throws {
    let original = bytes(count)
    let read = try ImageBytes(contentsOf: region(of: original))
    #expect(read.withUnsafeBytes { Array($0) } == original)
  }

  @Test(arguments: [64, ImageBytes.mappingThreshold + 5_000])
  func `a region may start at any offset`(count: Int) throws {
    let original = bytes(count)
    let read = try ImageBytes(contentsOf: region(of: original, offset: 33))
    #expect(read.withUnsafeBytes { Array($0) } == Array(original[33...]))
  }

  @Test(arguments: [0..<100, 0..<0, 100..<100, 7..<50, 99..<100])
  func `a part of what was read is kept with the memory of the whole`(part: Range<Int>) throws {
    for _ in 0..<1_000 {
      let kept = try #require(
        ImageBytes(capacity: 100, lease: nil) { buffer in
          buffer.copyBytes(from: bytes(100))
          return part
        })
      #expect(kept.withUnsafeBytes { Array($0) } == Array(bytes(100)[part]))
      #expect(kept.count == part.count && kept.heldBytes == 100)
    }
  }

  @Test(arguments: [100, ImageBytes.mappingThreshold * 2])
  func `a file shorter than its region is an error`(count: Int) throws {
    let short = try region(of: bytes(50), count: count)
    #expect(throws: SystemError(EIO)) { try ImageBytes(contentsOf: short) }
  }

  @Test func `a region closes its descriptor at the end of its life`() throws {
    let descriptor: CInt
    var file = stat()
    do {
      let region = try region(of: [1, 2, 3])
      descriptor = region.descriptor
      fstat(descriptor, &file)
      #expect(fcntl(descriptor, F_GETFD) >= 0)
      withExtendedLifetime(region) {}
    }
    // Another test may have reused the descriptor number, but not for the same file.
    var status = stat()
    #expect(
      fstat(descriptor, &status) != 0 || status.st_dev != file.st_dev
        || status.st_ino != file.st_ino
        || status.st_size != 3 || status.st_nlink != 0)
  }
}
