// LittleEndianBytes: numbers out of a stranger's bytes, the lowest byte first, and none from past their end.

import Model

/// A file's bytes, every access to which is checked: `UnsafeRawBufferPointer` checks nothing in an optimized build.
struct LittleEndianBytes {
  private let bytes: UnsafeRawBufferPointer

  init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

  /// How many there are.
  var count: Int { bytes.count }

  /// A part of them.
  ///
  /// - Throws: `ImageError.undecodable` where not all of it is there.
  func part(at offset: Int, count: Int) throws(ImageError) -> UnsafeRawBufferPointer {
    // Subtracted, since a sum of what a stranger says may have more bits than a number has.
    guard offset >= 0, count >= 0, offset <= bytes.count, count <= bytes.count - offset else {
      throw .undecodable(
        detail: "\(count) bytes from \(offset) on are wanted of \(bytes.count)")
    }
    return UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + count])
  }

  /// What follows a place.
  func part(from offset: Int) throws(ImageError) -> UnsafeRawBufferPointer {
    try part(at: offset, count: max(0, bytes.count - offset))
  }

  /// An unsigned number.
  ///
  /// - Parameter width: Its bytes, 1–4.
  func number(at offset: Int, width: Int) throws(ImageError) -> Int {
    try part(at: offset, count: width).reversed().reduce(0) { $0 << 8 | Int($1) }
  }

  /// A number of 32 bits with a sign.
  func signed(at offset: Int) throws(ImageError) -> Int {
    Int(Int32(truncatingIfNeeded: try number(at: offset, width: 4)))
  }
}
