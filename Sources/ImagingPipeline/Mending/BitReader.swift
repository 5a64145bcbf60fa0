// BitReader: reads the bits of coded images' headers.

import Platform

/// Reads bits of untrusted bytes.
struct BitReader {
  private let bytes: UnsafeRawBufferPointer
  private(set) var position: Int

  init(_ bytes: UnsafeRawBufferPointer, at position: Int = 0) {
    self.bytes = bytes
    self.position = position
  }

  /// Skips bits.
  mutating func pass(_ count: Int) throws(EndOfBytes) {
    guard count <= bytes.count * 8 - position else { throw EndOfBytes() }
    position += count
  }

  mutating func flag() throws(EndOfBytes) -> Bool { try number(1) == 1 }

  mutating func number(_ count: Int) throws(EndOfBytes) -> Int {
    let start = position
    try pass(count)
    return (start..<position).reduce(0) { $0 << 1 | Int(bytes[$1 / 8] >> (7 - $1 % 8) & 1) }
  }

  /// Reads a number in Exp-Golomb code (ITU-T H.265, 9.2; AV1 specification, 4.10.3).
  mutating func exponential() throws(EndOfBytes) -> Int {
    var zeros = 0
    while try !flag() {
      zeros += 1
      // No number has more, and nothing follows them in AV1.
      if zeros == 32 { return Int(UInt32.max) }
    }
    return try 1 << zeros - 1 + number(zeros)
  }
}
