// JPEGRecompression: writes the coefficients of a JPEG in fewer bytes.

import CJPEG

/// A JPEG whose coefficients are written again, with better codes. No coefficient changes, so every
/// decoder computes the same pixels.
enum JPEGRecompression {
  /// Returns the same image in fewer bytes: progressive or, if that is larger, in one scan with the
  /// best Huffman codes. Comments and application segments are kept.
  ///
  /// - Returns: `nil` if neither takes fewer bytes, if the file is progressive already, or if it is
  ///   damaged.
  static func smaller(_ file: UnsafeRawBufferPointer) -> [UInt8]? {
    for isProgressive in [true, false] {
      guard let bytes = rewritten(file, isProgressive: isProgressive) else { return nil }
      if bytes.count < file.count { return bytes }
    }
    return nil
  }

  private static func rewritten(
    _ file: UnsafeRawBufferPointer, isProgressive: Bool
  ) -> [UInt8]? {
    guard let jpeg = pictor_jpeg_open(file.baseAddress, file.count, 1) else { return nil }
    defer { pictor_jpeg_close(jpeg) }
    guard jpeg.pointee.source.progressive_mode == 0, pictor_jpeg_read(jpeg) == 0,
      jpeg.pointee.errors.num_warnings == 0,
      pictor_jpeg_rewrite(jpeg, isProgressive ? 1 : 0) == 0, let bytes = jpeg.pointee.bytes
    else { return nil }
    return Array(UnsafeBufferPointer(start: bytes, count: Int(jpeg.pointee.count)))
  }
}
