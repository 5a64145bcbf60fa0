// SourceHead: what a source's first bytes tell before a worker has it.

import Glibc
import Model
import Platform

/// Reads the first bytes of a source, which may block.
enum SourceHead {
  /// The number of bytes read. An SVG that begins with a longer comment counts as unknown.
  private static let length = 512

  /// Returns the format of a file; `nil` for an unknown one.
  static func format(of file: FileRegion) -> ImageFormat? {
    withBytes(of: file) { FormatSigns.format(of: $0) } ?? nil
  }

  /// Returns whether the pixels of a file may be indices of a palette.
  static func mayHavePalette(_ file: FileRegion) -> Bool {
    withBytes(of: file) { bytes in
      switch FormatSigns.format(of: bytes) {
      case .gif, .bmp, .ico: true
      // The colour type in `IHDR` (PNG, third edition, 11.2.1)
      case .png: bytes.count > 25 && bytes[25] == 3
      default: false
      }
    } ?? false
  }

  private static func withBytes<Result>(
    of file: FileRegion, _ body: (UnsafeRawBufferPointer) -> Result
  ) -> Result? {
    withUnsafeTemporaryAllocation(byteCount: length, alignment: 8) { buffer in
      let wanted = min(length, file.count)
      let count = pread(file.descriptor, buffer.baseAddress, wanted, off_t(file.offset))
      withExtendedLifetime(file) {}
      return count > 0 ? body(UnsafeRawBufferPointer(rebasing: buffer[..<count])) : nil
    }
  }
}
