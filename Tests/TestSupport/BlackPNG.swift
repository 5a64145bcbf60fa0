// BlackPNG: PNGs of many megapixels in a few kilobytes.

extension TestImages {
  /// A black PNG of 1 bit a pixel (PNG 1.2), compressed a thousand times by one repetition after the other.
  public static func blackPNG(width: Int, height: Int, isInterlaced: Bool = false) -> [UInt8] {
    let header = big(width) + big(height) + [1, 0, 0, 0, isInterlaced ? 1 : 0]
    // First column and row and steps of Adam7's passes (PNG 1.2, 8.2).
    let passes =
      isInterlaced
      ? [
        (0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2),
        (0, 1, 1, 2),
      ] : [(0, 0, 1, 1)]
    let count = passes.reduce(0) { sum, pass in
      let columns = (width - pass.0 + pass.2 - 1) / pass.2
      let rows = (height - pass.1 + pass.3 - 1) / pass.3
      return sum + (1 + (columns + 7) / 8) * rows
    }
    return [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a] + chunk("IHDR", header)
      + chunk("IDAT", zeros(count)) + chunk("IEND", [])
  }

  /// So many zeros as a zlib stream (RFC 1950 and 1951): one of them, then copies of 258, 13 bits each.
  private static func zeros(_ count: Int) -> [UInt8] {
    var bits = BitWriter()
    // The last block, with the fixed codes; the literal 0.
    bits.put(0b011, 3)
    bits.putCode(0b0011_0000, 8)
    let copies = (count - 1) / 258
    for _ in 0..<copies {
      bits.putCode(0b1100_0101, 8)
      bits.putCode(0, 5)
    }
    for _ in 0..<(count - 1 - copies * 258) { bits.putCode(0b0011_0000, 8) }
    bits.putCode(0, 7)
    // Adler-32 of zeros.
    return [0x78, 0x01] + bits.bytes + big((count % 65_521) << 16 | 1)
  }

  private struct BitWriter {
    private var finished: [UInt8] = []
    private var (window, count): (UInt, Int) = (0, 0)

    /// Everything, filled up to whole bytes.
    var bytes: [UInt8] { count > 0 ? finished + [UInt8(window)] : finished }

    /// The lowest bit first, as numbers are stored.
    mutating func put(_ value: UInt, _ width: Int) {
      window |= value << UInt(count)
      count += width
      while count >= 8 {
        finished.append(UInt8(window & 0xff))
        (window, count) = (window >> 8, count - 8)
      }
    }

    /// The highest bit first, as codes are stored.
    mutating func putCode(_ code: UInt, _ width: Int) {
      for bit in (0..<width).reversed() { put(code >> UInt(bit) & 1, 1) }
    }
  }

  private static func chunk(_ name: String, _ data: [UInt8]) -> [UInt8] {
    let body = Array(name.utf8) + data
    var remainder: UInt32 = 0xffff_ffff
    for byte in body {
      remainder ^= UInt32(byte)
      for _ in 0..<8 { remainder = remainder >> 1 ^ (remainder & 1 == 1 ? 0xedb8_8320 : 0) }
    }
    return big(data.count) + body + big(Int(~remainder))
  }

  private static func big(_ value: Int) -> [UInt8] {
    withUnsafeBytes(of: UInt32(truncatingIfNeeded: value).bigEndian) { Array($0) }
  }
}
