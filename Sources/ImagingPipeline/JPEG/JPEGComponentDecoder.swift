// JPEGComponentDecoder: one component of a JPEG being decoded: its blocks, one after the other, each made smaller at once.

/// The innermost loop of `JPEGReducer`. What it looks up lies in memory of its own, without the counting of references
/// that arrays would cost for each block.
struct JPEGComponentDecoder: ~Copyable {
  /// The last mean value; the next one is given by its difference to it.
  var mean = 0

  private let blocks: (across: Int, down: Int)
  private let dc: JPEGHuffmanTable
  private let ac: JPEGHuffmanTable
  /// Pixels that a block becomes.
  private let across: Int
  private let down: Int
  /// `JPEGHuffmanTable.quick` for DC, then for AC. Owned: freed by `deinit`.
  private let quick: UnsafeMutablePointer<UInt32>
  /// The last place whose number makes a difference.
  private let last: Int
  /// `JPEGHuffmanTable.runs` for AC. Owned: freed by `deinit`.
  private let runs: UnsafeMutablePointer<UInt32>
  /// `JPEGBasis.patterns`. Owned: freed by `deinit`.
  private let patterns: UnsafeMutablePointer<Float>
  /// A block's pixels. Owned: freed by `deinit`.
  private let block: UnsafeMutablePointer<Float>
  /// Of a block's numbers that are not zero the places and the values. Owned: freed by `deinit`.
  private let places: UnsafeMutablePointer<UInt8>
  private let numbers: UnsafeMutablePointer<Float>

  private static let quickCount = 1 << JPEGHuffmanTable.quickBits

  init(_ component: JPEGFrame.Component, _ basis: JPEGBasis) {
    (blocks, dc, ac) = (component.blocks, component.dc, component.ac)
    (across, down) = basis.size
    quick = .allocate(capacity: 2 * Self.quickCount)
    quick.initialize(from: component.dc.quick, count: Self.quickCount)
    (quick + Self.quickCount).initialize(from: component.ac.quick, count: Self.quickCount)
    last = basis.last
    let all = ac.runs
    runs = .allocate(capacity: all.count)
    runs.initialize(from: all, count: all.count)
    patterns = .allocate(capacity: basis.patterns.count)
    patterns.initialize(from: basis.patterns, count: basis.patterns.count)
    block = .allocate(capacity: 64)
    block.initialize(repeating: 0, count: 64)
    places = .allocate(capacity: 64)
    places.initialize(repeating: 0, count: 64)
    numbers = .allocate(capacity: 64)
    numbers.initialize(repeating: 0, count: 64)
  }

  deinit {
    quick.deallocate()
    runs.deallocate()
    patterns.deallocate()
    block.deallocate()
    places.deallocate()
    numbers.deallocate()
  }

  /// Decodes its blocks of a unit.
  ///
  /// - Parameters:
  ///   - target: Where the upper left pixel goes; there is room for all.
  ///   - stride: Values from one row there to the next.
  /// - Returns: Whether they made sense.
  mutating func decodeUnit(
    _ bits: inout JPEGBits, to target: UnsafeMutablePointer<Float>, stride: Int
  ) -> Bool {
    for row in 0..<blocks.down {
      for column in 0..<blocks.across {
        let corner = target + row * down * stride + column * across
        let found = readBlock(&bits)
        guard found >= 0 else { return false }
        switch across * down {
        case 1: corner[0] = patterns[0] * Float(mean) + 128
        case 4: addUp(SIMD4<Float>.self, found, to: corner, stride: stride)
        case 16: addUp(SIMD16<Float>.self, found, to: corner, stride: stride)
        default: addUp(found, to: corner, stride: stride)
        }
      }
    }
    return true
  }

  /// Reads a block's mean.
  private mutating func readMean(_ bits: inout JPEGBits) -> Bool {
    bits.refill()
    let difference = Self.next(&bits, quick, dc)
    // 11 bits and a sign are all that can make sense, of the sum too; one more for encoders that round up.
    guard difference.advance >= 0, abs(mean &+ difference.number) <= 1 << 12 else { return false }
    mean &+= difference.number
    return true
  }

  /// Reads a block's numbers: its mean, and into `places` and `numbers` what else of use is not zero.
  ///
  /// - Returns: How many of those there are; -1 where the bits make no sense.
  private mutating func readBlock(_ bits: inout JPEGBits) -> Int {
    guard readMean(&bits) else { return -1 }
    let table = quick + Self.quickCount
    // Copies that stay in registers, between the few calls of which one needs `bits` itself.
    var window = bits.window
    var (place, found) = (0, 0)
    while place < last {
      if window.count < 32 {
        bits.window = window
        bits.refill()
        window = bits.window
      }
      let packed = table[Int(truncatingIfNeeded: window.bits &>> Self.quickShift)]
      let entry = JPEGHuffmanTable.unpack(packed)
      var number = entry.value
      if packed != 0 && entry.more == 0 {
        window.bits &<<= UInt64(truncatingIfNeeded: entry.bits)
        window.count &-= entry.bits
        place &+= entry.advance
      } else {
        bits.window = window
        let next = Self.next(&bits, table, ac)
        guard next.advance > 0 else { return -1 }
        window = bits.window
        place &+= next.advance
        number = next.number
      }
      guard place < 64 else {
        bits.window = window
        return found
      }
      places[found] = UInt8(truncatingIfNeeded: place)
      numbers[found] = Float(number)
      found &+= 1
    }
    bits.window = window
    return skipRest(&bits, from: place) ? found : -1
  }

  /// Goes past the rest of a block, several codes at a time.
  @inline(__always)
  private func skipRest(_ bits: inout JPEGBits, from start: Int) -> Bool {
    var window = bits.window
    var place = start
    while place < 63 {
      if window.count < 32 {
        bits.window = window
        bits.refill()
        window = bits.window
      }
      let packed = runs[Int(truncatingIfNeeded: window.bits &>> Self.quickShift)]
      let reached = place &+ Int(packed &>> 6 & 127)
      let isEnd = packed &>> 13 != 0
      // What follows the last number of a block is the next one's, even if it looks like this one's end.
      if packed & 63 != 0 && (reached < 63 || reached == 63 && !isEnd) {
        window.bits &<<= UInt64(packed & 63)
        window.count &-= Int(packed & 63)
        place = isEnd ? 64 : reached
      } else {
        bits.window = window
        let next = Self.next(&bits, quick + Self.quickCount, ac)
        guard next.advance > 0 else { return false }
        window = bits.window
        place &+= next.advance
      }
    }
    bits.window = window
    return true
  }

  private static let quickShift = UInt64(64 - JPEGHuffmanTable.quickBits)

  /// Adds up what a block's numbers make and writes the pixels.
  @inline(__always)
  private func addUp<Pixels: SIMD>(
    _: Pixels.Type, _ found: Int, to corner: UnsafeMutablePointer<Float>, stride: Int
  ) where Pixels.Scalar == Float {
    let count = Pixels.scalarCount
    let patterns = UnsafeRawPointer(patterns)
    // 128 is what the numbers are short of (T.81, A.3.1).
    var pixels = Pixels(repeating: self.patterns[0] * Float(mean) + 128)
    for index in 0..<found {
      let offset = Int(places[index]) &* count &* 4
      pixels += patterns.loadUnaligned(fromByteOffset: offset, as: Pixels.self) * numbers[index]
    }
    UnsafeMutableRawPointer(block).storeBytes(of: pixels, as: Pixels.self)
    put(to: corner, stride: stride)
  }

  /// The same for other numbers of pixels, up to 64: more than registers hold.
  private func addUp(_ found: Int, to corner: UnsafeMutablePointer<Float>, stride: Int) {
    let count = across * down
    block.update(repeating: patterns[0] * Float(mean) + 128, count: count)
    for index in 0..<found {
      let pattern = patterns + Int(places[index]) &* count
      let number = numbers[index]
      for pixel in 0..<count { block[pixel] += pattern[pixel] * number }
    }
    put(to: corner, stride: stride)
  }

  @inline(__always)
  private func put(to corner: UnsafeMutablePointer<Float>, stride: Int) {
    for y in 0..<down {
      for x in 0..<across { corner[y &* stride &+ x] = block[y &* across &+ x] }
    }
  }

  /// Reads a code and the number behind it, together at most 31 bits.
  ///
  /// - Returns: An `advance` of -1 where there is no such code.
  @inline(never)
  private static func next(
    _ bits: inout JPEGBits, _ quick: UnsafeMutablePointer<UInt32>,
    _ table: borrowing JPEGHuffmanTable
  ) -> (advance: Int, number: Int) {
    let packed = quick[bits.peek(JPEGHuffmanTable.quickBits)]
    let found =
      packed == 0 ? table.entry(for: bits.peek(16)) : JPEGHuffmanTable.unpack(packed)
    guard let entry = found else { return (-1, 0) }
    bits.skip(entry.bits)
    guard entry.more > 0 else { return (entry.advance, entry.value) }
    let raw = bits.peek(entry.more)
    bits.skip(entry.more)
    return (entry.advance, JPEGHuffmanTable.number(raw, bits: entry.more))
  }
}
