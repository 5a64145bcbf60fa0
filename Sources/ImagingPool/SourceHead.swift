// SourceHead: what a source's first bytes tell before a worker has it.

import Core
import Glibc

/// Reads the first bytes of a source, which may block.
enum SourceHead {
  /// The number of bytes read. An SVG that begins with a longer comment counts as unknown.
  private static let length = 512

  /// Returns the format of a file; `nil` for an unknown one.
  static func format(of file: FileRegion) -> ImageFormat? {
    withBytes(of: file) { FormatSigns.format(of: $0) } ?? nil
  }

  /// Returns whether a file may be a vector. A compressed one, and one that begins with a long
  /// comment, have an unknown head.
  static func mayBeVector(_ file: FileRegion) -> Bool { format(of: file) ?? .svg == .svg }

  /// Returns whether a file is in a risky format, or in an unknown one. A fault in a decoder stays
  /// with few sources if workers that have decoded such sources are replaced early.
  static func isRisky(_ file: FileRegion) -> Bool {
    format(of: file).map(\.traits.isRisky) ?? true
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

  /// Returns the pixels of a file whose decoder makes no others: PNG and JPEG. `nil` for any other,
  /// or if its head does not tell.
  static func size(of file: FileRegion) -> PixelSize? {
    let size: (width: Int, height: Int)? =
      withBytes(of: file) { bytes in
        var reader = ByteReader(bytes, at: 16)
        switch FormatSigns.format(of: bytes) {
        case .png:
          guard let width = try? reader.number(4), let height = try? reader.number(4) else {
            return nil
          }
          return (width, height)
        case .jpeg: return frameSize(of: file)
        default: return nil
        }
      } ?? nil
    guard let size, size.width > 0, size.height > 0 else { return nil }
    return PixelSize(width: size.width, height: size.height)
  }

  /// The maximum number of segments that are looked through for a JPEG's frame.
  private static let maximumSegments = 256

  /// Reads the frame header of a JPEG (ISO/IEC 10918-1, B.2.2) from segment to segment.
  private static func frameSize(of file: FileRegion) -> (width: Int, height: Int)? {
    var position = 2
    for _ in 0..<maximumSegments {
      var head = [UInt8](repeating: 0, count: 9)
      let count = pread(
        file.descriptor, &head, min(head.count, file.count - position),
        off_t(file.offset + position))
      guard count == head.count, head[0] == 0xff else { return nil }
      func pair(_ index: Int) -> Int { Int(head[index]) << 8 | Int(head[index + 1]) }
      switch head[1] {
      case 0xc4, 0xc8, 0xcc: break
      case 0xc0...0xcf: return (pair(7), pair(5))
      case 0x01, 0xd0...0xda, 0xff: return nil
      default: break
      }
      position += 2 + max(pair(2), 2)
      guard position < file.count else { return nil }
    }
    return nil
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
