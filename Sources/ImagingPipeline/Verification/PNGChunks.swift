// PNGChunks: a PNG's chunks one after the other, each held to the bytes that are there.

/// One chunk (PNG 1.2, section 3.2).
struct PNGChunk {
  /// Four letters.
  let type: [UInt8]
  let content: UnsafeRawBufferPointer
  /// Type and content, which the checksum is over.
  let checked: UnsafeRawBufferPointer
  let checksum: UInt32

  func isOf(_ name: StaticString) -> Bool {
    name.withUTF8Buffer { type.elementsEqual($0) }
  }

  /// Whether pixels cannot be shown without it (section 3.3: an upper-case first letter).
  var isCritical: Bool { type[0] & 0x20 == 0 }
}

/// Goes from chunk to chunk.
struct PNGChunks {
  /// Why there is no further one.
  enum End: Error {
    /// The chunk is longer than what is left of the file.
    case truncated
    /// Its type is not of letters.
    case senseless
  }

  private let bytes: UnsafeRawBufferPointer
  /// Where the next chunk begins.
  private(set) var position = 8

  /// - Parameter bytes: A file that begins with a PNG's signature.
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
