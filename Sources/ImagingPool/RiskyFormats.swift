// RiskyFormats: the formats whose decoders have the most faults, after which workers are replaced early.

import Glibc
import Model
import Platform

/// Formats with large or seldom tested decoders. A fault in one of them stays with few sources if workers that have
/// decoded such sources are replaced early.
enum RiskyFormats {
  static let all: Set<ImageFormat> = [.heic, .avif, .jxl, .jp2, .tiff, .svg]

  /// The number of bytes read. An SVG that begins with a longer comment counts as unknown.
  private static let length = 512

  /// Returns whether a file is in such a format, or in an unknown one. Reads a few bytes, which may block.
  static func contain(_ file: FileRegion) -> Bool { format(of: file).map(all.contains) ?? true }

  /// Returns the format of a file; `nil` for an unknown one. Reads a few bytes, which may block.
  static func format(of file: FileRegion) -> ImageFormat? {
    withUnsafeTemporaryAllocation(byteCount: length, alignment: 8) { buffer in
      let wanted = min(length, file.count)
      let count = pread(file.descriptor, buffer.baseAddress, wanted, off_t(file.offset))
      withExtendedLifetime(file) {}
      guard count > 0 else { return nil }
      let bytes = UnsafeRawBufferPointer(rebasing: buffer[..<count])
      return FormatSigns.format(of: bytes)
    }
  }
}
