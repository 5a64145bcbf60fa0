// JPEGBits: reads the bits of a JPEG's entropy-coded data.

/// Reads the bits between two markers. Bits past a marker are read as zeros and counted.
struct JPEGBits {
  /// The bits read ahead, left-aligned, and their count.
  typealias Window = (bits: UInt64, count: Int)

  private let bytes: UnsafePointer<UInt8>
  private let limit: Int
  /// The next byte that is not in `window`.
  private var position: Int
  /// The bits read ahead.
  var window: Window = (0, 0)
  /// The number of trailing bits in `window` that do not come from the file.
  private var missing = 0

  /// Whether bytes were left out.
  private(set) var hasMoved = false

  /// Starts at a byte.
  ///
  /// - Parameter source: The file; it must outlive this value.
  init?(_ source: UnsafeRawBufferPointer, at position: Int) {
    guard let start = source.baseAddress, position <= source.count else { return nil }
    bytes = start.assumingMemoryBound(to: UInt8.self)
    limit = source.count
    self.position = position
  }

  /// Ensures that `window` has at least 32 bits.
  @inline(__always)
  mutating func refill() {
    guard window.count < 32 else { return }
    if position + 4 <= limit {
      let next = UInt32(
        bigEndian: UnsafeRawPointer(bytes).loadUnaligned(fromByteOffset: position, as: UInt32.self))
      // Tests whether no byte of `next` is 0xff, that is, whether no byte of its complement is 0.
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
        // T.81, F.1.2.3: a 0xff byte that is not a marker is followed by 0.
        byte = 0xff
        position += 2
      } else {
        missing += 8
      }
      window.bits |= UInt64(byte) << UInt64(56 - window.count)
      window.count += 8
    }
  }

  /// Returns the next 1–32 bits; call `refill` first.
  @inline(__always)
  func peek(_ bits: Int) -> Int { Int(truncatingIfNeeded: window.bits &>> UInt64(64 &- bits)) }

  /// Skips 0–32 bits.
  @inline(__always)
  mutating func skip(_ bits: Int) {
    window.bits &<<= UInt64(bits)
    window.count &-= bits
  }

  /// Where the next bit is in the file, counted in bits.
  var place: Int {
    var byte = position
    var left = window.count - missing
    while left > 0 {
      // The zero after a byte of ones is no byte of the codes (T.81, F.1.2.3).
      byte -= byte > 1 && bytes[byte - 1] == 0 && bytes[byte - 2] == 0xff ? 2 : 1
      left -= 8
    }
    return 8 * byte - left
  }

  /// Whether more bits were read than the data has.
  var isPastEnd: Bool { missing > window.count }

  /// The offset of the marker after the data that was read. `nil` after reading past the end, or if
  /// whole bytes are left before the marker.
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

  /// The whole bytes between the last bit that was read and the next marker; `nil` after reading
  /// past the end, or without a marker.
  var bytesBeforeMarker: Range<Int>? {
    guard !isPastEnd else { return nil }
    var start = (place + 7) / 8
    // The stuffed zero of a byte of ones that was read in part (T.81, F.1.2.3).
    if start > 0 && start < limit && bytes[start - 1] == 0xff && bytes[start] == 0 { start += 1 }
    var end = max(start, position)
    while end + 1 < limit {
      if bytes[end] == 0xff && bytes[end + 1] != 0 && bytes[end + 1] != 0xff {
        return start..<end
      }
      end += 1
    }
    return nil
  }

  /// Whether all bytes of a range are 0, or all are 0xff.
  func isFill(_ range: Range<Int>) -> Bool {
    guard let first = range.first, bytes[first] == 0 || bytes[first] == 0xff else { return false }
    return range.allSatisfy { bytes[$0] == bytes[first] }
  }

  /// Whether less than a byte is left before the next marker, all ones: the padding of T.81,
  /// F.1.2.3.
  var hasOnlyPadding: Bool {
    mutating get {
      refill()
      let left = window.count - missing
      return (0..<8).contains(left) && (left == 0 || peek(left) == 1 << left - 1)
    }
  }

  /// Continues at a byte of the file.
  mutating func move(to offset: Int) {
    hasMoved = true
    position = offset
    window = (0, 0)
    missing = 0
  }

  /// Whether the file has ended without a further marker.
  var isAtFileEnd: Bool { position + 1 >= limit }

  /// Moves past a marker.
  ///
  /// - Parameter marker: The second byte of the marker.
  /// - Returns: Whether the marker was present and all data before it was read, except padding
  ///   bits.
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
    window = (0, 0)
    missing = 0
    return true
  }
}
