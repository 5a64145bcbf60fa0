// CostlyBrotli: a Brotli stream whose decoding costs a hundred times the usual processor time.

/// Writes Brotli's bits, the lowest first (RFC 7932, section 1.5.1).
private struct BitWriter {
  var bits: [Bool] = []

  mutating func write(_ value: Int, width: Int) {
    for bit in 0..<width { bits.append(value >> bit & 1 == 1) }
  }

  /// Writes a prefix code of one symbol (section 3.4).
  mutating func writeCode(of symbol: Int, width: Int) {
    write(1, width: 2)
    write(0, width: 2)
    write(symbol, width: width)
  }

  func bytes() -> [UInt8] {
    stride(from: 0, to: bits.count, by: 8).map { start in
      bits[start..<min(start + 8, bits.count)].reversed().reduce(0) { $0 << 1 | ($1 ? 1 : 0) }
    }
  }
}

enum CostlyBrotli {
  /// Returns the beginning of an endless stream, of at least `count` bytes.
  ///
  /// Each meta-block has 256 types of literals and writes one byte. Its context map of 16,384
  /// entries is a few bytes long, and its decoder fills it and undoes its move-to-front coding.
  static func stream(count: Int) -> [UInt8] {
    var block = BitWriter()
    writeMetaBlock(to: &block)
    var stream = BitWriter()
    // A window of 64 KiB.
    stream.write(0, width: 1)
    for _ in 0..<16 { stream.bits += block.bits }
    let bytes = stream.bytes()
    // Eight meta-blocks are a whole number of bytes, and the second eight are like all later ones.
    let length = block.bits.count
    let unit = bytes[length..<2 * length]
    return Array(bytes[..<length])
      + Array(repeatElement(unit, count: count / length).joined())
  }

  /// Writes a meta-block of one byte (section 9.2).
  private static func writeMetaBlock(to writer: inout BitWriter) {
    // Not the last one; a length of 1 in four nibbles; compressed.
    writer.write(0, width: 1 + 2 + 16 + 1)
    // 256 types of literals, with the codes of their types and counts, and the first count.
    writer.write(1, width: 1)
    writer.write(7, width: 3)
    writer.write(127, width: 7)
    writer.writeCode(of: 0, width: 9)
    writer.writeCode(of: 0, width: 5)
    writer.write(3, width: 2)
    // One type of commands and of distances, no direct distances, context mode 0 for each type.
    writer.write(0, width: 1 + 1 + 2 + 4)
    for _ in 0..<256 { writer.write(0, width: 2) }
    // Two trees of literals; the map is one run of zeros, and its move-to-front coding is undone.
    writer.write(1, width: 1)
    writer.write(0, width: 3)
    writer.write(1, width: 1)
    writer.write(13, width: 4)
    writer.writeCode(of: 14, width: 4)
    writer.write(0, width: 14)
    writer.write(1, width: 1)
    // One tree of distances.
    writer.write(0, width: 1)
    // The codes of both trees of literals, of commands and of distances.
    writer.writeCode(of: 0, width: 8)
    writer.writeCode(of: 0, width: 8)
    writer.writeCode(of: 8, width: 10)
    writer.writeCode(of: 0, width: 6)
  }
}
