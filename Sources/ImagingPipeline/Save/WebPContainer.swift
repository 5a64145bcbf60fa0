// WebPContainer: removes the metadata that libvips writes into a WebP even when told to strip it.

import Glibc

/// The RIFF container around a WebP's image data (RFC 9649, section 2).
enum WebPContainer {
  /// Drops EXIF, XMP and profile, and the extended header if nothing needs it any more.
  ///
  /// libvips 8.14.1 writes an EXIF chunk of 208 bytes without information into every WebP, even
  /// with `strip`.
  ///
  /// - Parameter file: A complete WebP from an encoder; changed in place.
  /// - Returns: The number of bytes left.
  static func dropMetadata(in file: UnsafeMutableRawBufferPointer) -> Int {
    guard let start = file.baseAddress, file.count > headerLength else { return file.count }
    var from = headerLength
    var to = headerLength
    while from + chunkHeaderLength <= file.count {
      let name = file[from..<from + 4]
      let size = Int(file.loadUnaligned(fromByteOffset: from + 4, as: UInt32.self).littleEndian)
      // A padding byte follows a chunk of odd size.
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

  /// `RIFF`, the size of the rest, `WEBP`.
  private static let headerLength = 12
  /// The name and the size of a chunk.
  private static let chunkHeaderLength = 8
  /// The flags kept in the extended header: alpha and animation.
  private static let flagsKept: UInt8 = 0x12
}
