// WebPContainer: taking out of a finished WebP what libvips put there although it was told not to.

import Glibc

/// The RIFF container around a WebP's image data (RFC 9649, section 2).
enum WebPContainer {
  /// Drops EXIF, XMP and profile, and the extended header where nothing is left that needs one.
  ///
  /// libvips 8.14.1 writes an EXIF chunk into every WebP, with `strip` and without: 208 bytes that say nothing.
  ///
  /// - Parameter file: A whole WebP, as an encoder made it; changed in place.
  /// - Returns: How many bytes are left.
  static func dropMetadata(in file: UnsafeMutableRawBufferPointer) -> Int {
    guard let start = file.baseAddress, file.count > headerLength else { return file.count }
    var (from, to) = (headerLength, headerLength)
    while from + chunkHeaderLength <= file.count {
      let name = file[from..<from + 4]
      let size = Int(file.loadUnaligned(fromByteOffset: from + 4, as: UInt32.self).littleEndian)
      // A chunk of odd size is followed by a byte of padding.
      let length = min(chunkHeaderLength + size + size % 2, file.count - from)
      var isDropped = ["EXIF", "XMP ", "ICCP"].contains { name.elementsEqual($0.utf8) }
      if name.elementsEqual("VP8X".utf8), length > chunkHeaderLength {
        file[from + chunkHeaderLength] &= flagsKept
        isDropped = file[from + chunkHeaderLength] == 0
      }
      if !isDropped {
        memmove(start + to, start + from, length)
        to += length
      }
      from += length
    }
    file.storeBytes(of: UInt32(to - 8).littleEndian, toByteOffset: 4, as: UInt32.self)
    return to
  }

  /// `RIFF`, the size of what follows, `WEBP`.
  private static let headerLength = 12
  /// Its name and its size.
  private static let chunkHeaderLength = 8
  /// Of the extended header's flags: that there is an alpha, an animation.
  private static let flagsKept: UInt8 = 0x12
}
