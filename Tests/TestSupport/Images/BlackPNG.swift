// BlackPNG: PNGs of many megapixels in a few kilobytes.

extension TestImages {
  /// A black PNG of 1 bit a pixel (PNG 1.2), compressed a thousand times by repetitions.
  public static func blackPNG(
    width: Int, height: Int, isInterlaced: Bool = false, isDeep: Bool = false
  )
    -> [UInt8]
  {
    let header =
      CodedPNG.big(width, width: 4) + CodedPNG.big(height, width: 4) + [
        isDeep ? 16 : 1, isDeep ? 6 : 0, 0, 0, isInterlaced ? 1 : 0,
      ]
    let passes = isInterlaced ? CodedPNG.passes : [(0, 0, 1, 1)]
    let count = passes.reduce(0) { sum, pass in
      let columns = (width - pass.0 + pass.2 - 1) / pass.2
      let rows = (height - pass.1 + pass.3 - 1) / pass.3
      return sum + (1 + (columns * (isDeep ? 64 : 1) + 7) / 8) * rows
    }
    return CodedPNG.signature + CodedPNG.chunk("IHDR", content: header)
      + CodedPNG.chunk("IDAT", content: zeros(count)) + CodedPNG.chunk("IEND", content: [])
  }

  /// So many zeros as a zlib stream (RFC 1950, 1951): one, then copies of 258, 13 bits each.
  public static func zeros(_ count: Int) -> [UInt8] {
    var bits = BitWriter()
    // The last block, with the fixed codes; the literal 0.
    bits.put(0b011, width: 3)
    bits.putCode(0b0011_0000, width: 8)
    let copies = (count - 1) / 258
    for _ in 0..<copies {
      bits.putCode(0b1100_0101, width: 8)
      bits.putCode(0, width: 5)
    }
    for _ in 0..<(count - 1 - copies * 258) { bits.putCode(0b0011_0000, width: 8) }
    bits.putCode(0, width: 7)
    // Adler-32 of zeros.
    return [0x78, 0x01] + bits.bytes + CodedPNG.big((count % 65_521) << 16 | 1, width: 4)
  }

  private struct BitWriter {
    private var finished: [UInt8] = []
    private var window: UInt = 0
    private var count = 0

    /// Everything, filled up to whole bytes.
    var bytes: [UInt8] { count > 0 ? finished + [UInt8(window)] : finished }

    /// The lowest bit first, as numbers are stored.
    mutating func put(_ value: UInt, width: Int) {
      window |= value << UInt(count)
      count += width
      while count >= 8 {
        finished.append(UInt8(window & 0xff))
        window = window >> 8
        count -= 8
      }
    }

    /// The highest bit first, as codes are stored.
    mutating func putCode(_ code: UInt, width: Int) {
      for bit in (0..<width).reversed() { put(code >> UInt(bit) & 1, width: 1) }
    }
  }
}
