// Zlib: compresses and decompresses whole zlib streams (RFC 1950) by libdeflate.

import CDeflate

enum Zlib {
  /// Returns the `count` bytes of a zlib stream; `nil` if it is damaged or has another number of bytes.
  static func inflated(_ bytes: [UInt8], count: Int) -> [UInt8]? {
    guard let decompressor = libdeflate_alloc_decompressor() else { return nil }
    defer { libdeflate_free_decompressor(decompressor) }
    var isWhole = false
    let result = [UInt8](unsafeUninitializedCapacity: count) { buffer, used in
      // Without a place for the count, any other count of bytes is an error.
      isWhole =
        libdeflate_zlib_decompress(
          decompressor, bytes, bytes.count, buffer.baseAddress, count, nil) == LIBDEFLATE_SUCCESS
      used = isWhole ? count : 0
    }
    return isWhole ? result : nil
  }

  /// Returns a zlib stream of the bytes; `nil` if memory is short.
  ///
  /// - Parameter level: libdeflate's level, 0 to 12.
  static func deflated(_ bytes: [UInt8], level: CInt) -> [UInt8]? {
    guard let compressor = libdeflate_alloc_compressor(level) else { return nil }
    defer { libdeflate_free_compressor(compressor) }
    let room = libdeflate_zlib_compress_bound(compressor, bytes.count)
    let result = [UInt8](unsafeUninitializedCapacity: room) { buffer, used in
      used = libdeflate_zlib_compress(
        compressor, bytes, bytes.count, buffer.baseAddress, room)
    }
    return result.isEmpty ? nil : result
  }
}
