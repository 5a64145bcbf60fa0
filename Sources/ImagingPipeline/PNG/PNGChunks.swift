// PNGChunks: iterates over a PNG's chunks, checking each length against the available bytes.

/// A chunk (PNG 1.2, section 3.2).
struct PNGChunk {
  /// The four letters of the type.
  let type: [UInt8]
  let content: UnsafeRawBufferPointer
  /// The type and content, which the checksum covers.
  let checked: UnsafeRawBufferPointer
  let checksum: UInt32

  func isOf(_ name: StaticString) -> Bool {
    name.withUTF8Buffer { type.elementsEqual($0) }
  }

  /// Whether the chunk is critical: its first letter is upper-case (section 3.3).
  var isCritical: Bool { type[0] & 0x20 == 0 }
}

/// An iterator over chunks.
struct PNGChunks {
  /// The reason why no further chunk can be read.
  enum End: Error {
    /// The chunk is longer than the rest of the file.
    case truncated
    /// The chunk type contains something other than letters.
    case senseless
  }

  private let bytes: UnsafeRawBufferPointer
  /// The offset of the next chunk.
  private(set) var position = 8

  /// Creates an iterator.
  ///
  /// - Parameter bytes: A file that starts with the PNG signature.
  init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

  mutating func next() throws(End) -> PNGChunk {
    guard position + 12 <= bytes.count else { throw .truncated }
    let type = Array(bytes[position + 4..<position + 8])
    guard type.allSatisfy({ (0x41...0x5a).contains($0 & 0xdf) }) else { throw .senseless }
    let length = number(at: position)
    guard length <= bytes.count - position - 12 else { throw .truncated }
    defer { position += 12 + length }
    return PNGChunk(
      type: type,
      content: UnsafeRawBufferPointer(rebasing: bytes[position + 8..<position + 8 + length]),
      checked: UnsafeRawBufferPointer(rebasing: bytes[position + 4..<position + 8 + length]),
      checksum: UInt32(number(at: position + 8 + length)))
  }

  private func number(at offset: Int) -> Int {
    bytes[offset..<offset + 4].reduce(0) { $0 << 8 | Int($1) }
  }
}
