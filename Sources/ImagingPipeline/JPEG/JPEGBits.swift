// JPEGBits: the bits of a JPEG's coded pixels, in order.

/// Reads the bits between two markers; what stands behind them is read as zeros, and counted.
struct JPEGBits {
  /// Bits read ahead, the next one on top, and how many they are.
  typealias Window = (bits: UInt64, count: Int)

  private let bytes: UnsafePointer<UInt8>
  private let limit: Int
  /// The next byte that is not in `buffer`.
  private var position: Int
  /// Bits read ahead.
  var window: Window = (0, 0)
  /// How many of them, the last ones, no byte stood for.
  private var missing = 0

  /// Starts at a byte.
  ///
  /// - Parameter source: Must outlive this.
  init?(_ source: UnsafeRawBufferPointer, at position: Int) {
    guard let start = source.baseAddress, position <= source.count else { return nil }
    bytes = start.assumingMemoryBound(to: UInt8.self)
    limit = source.count
    self.position = position
  }

  /// Sees to it that the next 32 bits can be read.
  @inline(__always)
  mutating func refill() {
    guard window.count < 32 else { return }
    if position + 4 <= limit {
      let next = UInt32(
        bigEndian: UnsafeRawPointer(bytes).loadUnaligned(fromByteOffset: position, as: UInt32.self))
      // Only with a byte of all ones a borrow reaches the top of one whose top is not set.
      let zeros = ~next
      if (zeros &- 0x0101_0101) & next & 0x8080_8080 == 0 {
        window.bits |= UInt64(next) &<< UInt64(32 &- window.count)
        window.count &+= 32
        position &+= 4
        return
      }
    }
    refillByBytes()
  }

  @inline(never)
  private mutating func refillByBytes() {
    while window.count <= 56 {
      var byte: UInt8 = 0
      if position < limit && bytes[position] != 0xff {
        byte = bytes[position]
        position += 1
      } else if position + 1 < limit && bytes[position + 1] == 0 {
        // T.81, F.1.2.3: a byte of all ones that is no marker is followed by a zero.
        byte = 0xff
        position += 2
      } else {
        missing += 8
      }
      window.bits |= UInt64(byte) << UInt64(56 - window.count)
      window.count += 8
    }
  }

  /// The next bits, 1–32, where `refill` made them ready.
  @inline(__always)
  func peek(_ bits: Int) -> Int { Int(truncatingIfNeeded: window.bits &>> UInt64(64 &- bits)) }

  /// Goes on by 0–32 bits.
  @inline(__always)
  mutating func skip(_ bits: Int) {
    window.bits &<<= UInt64(bits)
    window.count &-= bits
  }

  /// Whether bits were read that are not there.
  var isPastEnd: Bool { missing > window.count }

  /// Where the marker begins that stands behind what was read; `nil` where more was read than is there, or whole bytes
  /// are left before the marker.
  var end: Int? {
    mutating get {
      guard !isPastEnd else { return nil }
      refill()
      guard window.count - missing < 8, position + 1 < limit, bytes[position] == 0xff else {
        return nil
      }
      return position
    }
  }

  /// Whether nothing is left of the file, no marker either.
  var isAtFileEnd: Bool { position + 1 >= limit }

  /// Goes on behind a marker.
  ///
  /// - Parameter marker: The second of its bytes.
  /// - Returns: Whether all before it was read, but for what fills the last byte, and it is there.
  mutating func pass(_ marker: UInt8) -> Bool {
    guard !isPastEnd else { return false }
    refill()
    guard window.count - missing < 8, position < limit, bytes[position] == 0xff else {
      return false
    }
    var code = position + 1
    // Any number of bytes of ones may stand before a marker (T.81, B.1.1.2).
    while code < limit && bytes[code] == 0xff { code += 1 }
    guard code < limit, bytes[code] == marker else { return false }
    position = code + 1
    (window, missing) = ((0, 0), 0)
    return true
  }
}
