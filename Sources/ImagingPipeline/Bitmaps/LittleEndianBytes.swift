// LittleEndianBytes: reads little-endian numbers from untrusted bytes, with bounds checks.

import Model

/// A file's bytes with checked access; `UnsafeRawBufferPointer` checks nothing in an optimized
/// build.
struct LittleEndianBytes {
  private let bytes: UnsafeRawBufferPointer

  init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

  /// The number of bytes.
  var count: Int { bytes.count }

  /// Returns a part of the bytes.
  ///
  /// - Throws: `ImageError.undecodable` if the part exceeds the bytes.
  func part(at offset: Int, count: Int) throws(ImageError) -> UnsafeRawBufferPointer {
    // Subtracts instead of adding, because a sum of untrusted values may overflow.
    guard offset >= 0, count >= 0, offset <= bytes.count, count <= bytes.count - offset else {
      throw .undecodable(
        detail: "\(count) bytes at offset \(offset) exceed the \(bytes.count) available")
    }
    return UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + count])
  }

  /// Returns the bytes from an offset to the end.
  func part(from offset: Int) throws(ImageError) -> UnsafeRawBufferPointer {
    try part(at: offset, count: max(0, bytes.count - offset))
  }

  /// Reads an unsigned number.
  ///
  /// - Parameter width: The number of bytes, 1–4.
  func number(at offset: Int, width: Int) throws(ImageError) -> Int {
    try part(at: offset, count: width).reversed().reduce(0) { $0 << 8 | Int($1) }
  }

  /// Reads a signed 32-bit number.
  func signed(at offset: Int) throws(ImageError) -> Int {
    Int(Int32(truncatingIfNeeded: try number(at: offset, width: 4)))
  }
}
