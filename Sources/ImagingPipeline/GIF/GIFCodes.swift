// GIFCodes: reads the codes of a GIF's frame without drawing them.

/// Reads the codes of one frame, in blocks of up to 255 bytes (GIF89a, appendix F).
struct GIFCodes {
  /// The maximum number of codes.
  static let maximumCount = 4_096

  private let bytes: UnsafeRawBufferPointer
  private let lengths: UnsafeMutableBufferPointer<Int32>
  private let firstBits: Int
  private var position = 0
  /// The bytes left in the current block.
  private var left = 0
  private var window: UInt32 = 0
  private var count = 0
  private var hasEnded = false

  /// - Parameter lengths: Room for the number of pixels that each code stands for, to count them.
  init(
    bytes: UnsafeRawBufferPointer, bits: Int,
    lengths: UnsafeMutableBufferPointer<Int32> = UnsafeMutableBufferPointer(start: nil, count: 0)
  ) {
    self.bytes = bytes
    self.lengths = lengths
    firstBits = bits
  }

  /// Returns the number of pixels that the codes produce; `nil` for an invalid code. Stops at the
  /// end of the codes, or once `wanted` pixels are reached.
  mutating func countPixels(upTo wanted: Int) -> Int? {
    let clear = 1 << firstBits
    var next = clear + 2
    var size = firstBits + 1
    var last = -1
    for code in 0..<clear { lengths[code] = 1 }
    var pixels = 0
    while pixels < wanted {
      let code = read(size)
      if code < 0 || code == clear + 1 {
        hasEnded = true
        return pixels
      }
      if code == clear {
        next = clear + 2
        size = firstBits + 1
        last = -1
        continue
      }
      guard last >= 0 else {
        guard code < clear else { return nil }
        pixels += 1
        last = code
        continue
      }
      guard code < next || code == next && next < Self.maximumCount else { return nil }
      if next < Self.maximumCount {
        lengths[next] = lengths[last] + 1
        next += 1
        if next == 1 << size && size < 12 { size += 1 }
      }
      pixels += Int(lengths[code])
      last = code
    }
    lastSize = size
    return pixels
  }

  /// Calls `body` for each code with its bits, the end code included. Codes below `1 << bits` are single colours.
  mutating func forEach(_ body: (_ code: Int, _ size: Int) -> Void) {
    let clear = 1 << firstBits
    var next = clear + 2
    var size = firstBits + 1
    var isFirst = true
    while case let code = read(size), code >= 0 {
      body(code, size)
      if code == clear + 1 { return }
      if code == clear {
        next = clear + 2
        size = firstBits + 1
        isFirst = true
        continue
      }
      if !isFirst && next < Self.maximumCount {
        next += 1
        if next == 1 << size && size < 12 { size += 1 }
      }
      isFirst = false
    }
  }

  private var lastSize = 12

  /// Whether only the end code or padding follows the last pixel.
  var isAtEnd: Bool {
    mutating get {
      if hasEnded { return true }
      let code = read(lastSize)
      if code < 0 || code == 1 << firstBits + 1 { return true }
      // Some writers clear their table before the end code, and some pad with zeros.
      return left == 0 && position + 1 >= bytes.count
        || code == 1 << firstBits && read(firstBits + 1) == 1 << firstBits + 1
    }
  }

  /// Reads the next bits, least significant first; -1 if too few are left.
  @inline(__always)
  private mutating func read(_ bits: Int) -> Int {
    while count < bits {
      if left == 0 {
        // The terminator is a block of length 0; it must be present.
        guard position < bytes.count, bytes[position] > 0 else { return -1 }
        left = Int(bytes[position])
        position += 1
      }
      guard position < bytes.count else { return -1 }
      window |= UInt32(bytes[position]) << UInt32(count)
      position += 1
      left -= 1
      count += 8
    }
    defer {
      window >>= UInt32(bits)
      count -= bits
    }
    return Int(window & (1 << UInt32(bits) - 1))
  }
}
