// JPEGComponentDecoder: decodes the blocks of one JPEG component, and computes their pixels at the
// reduced size.

import Glibc

/// The innermost loop of `ScaledJPEGDecoder`. Lookup tables are in manually allocated memory,
/// because arrays would cost reference counting for each block.
struct JPEGComponentDecoder: ~Copyable {
  /// The DC value of the last block; the next block stores the difference from it.
  var mean = 0

  private let blocks: (across: Int, down: Int)
  private let dc: JPEGHuffmanTable
  private let ac: JPEGHuffmanTable
  private let sum: JPEGBlockSum
  /// The pixels that a block is reduced to.
  private let across: Int
  private let down: Int
  /// `JPEGHuffmanTable.quick` for DC, then for AC. Owned; freed by `deinit`.
  private let quick: UnsafeMutablePointer<UInt32>
  /// The last coefficient that affects the reduced block.
  private let last: Int
  /// `JPEGHuffmanTable.runs` for AC. Owned; freed by `deinit`.
  private let runs: UnsafeMutablePointer<UInt32>
  /// A block's coefficients other than zero, as `JPEGCoefficient` packs them. Owned; freed by
  /// `deinit`.
  private let found: UnsafeMutablePointer<UInt32>

  /// Valid differences and sums have 11 bits and a sign (T.81, F.1.2); one more bit tolerates
  /// encoders that round up.
  private static let highestMean = 1 << 12

  private static let quickCount = 1 << JPEGHuffmanTable.quickBits

  init(_ component: JPEGFrame.Component, basis: JPEGBasis) {
    blocks = component.blocks
    dc = component.dc
    ac = component.ac
    (across, down) = basis.size
    sum = JPEGBlockSum(basis)
    quick = .allocate(capacity: 2 * Self.quickCount)
    quick.initialize(from: component.dc.quick, count: Self.quickCount)
    (quick + Self.quickCount).initialize(from: component.ac.quick, count: Self.quickCount)
    last = basis.last
    let all = ac.runs
    runs = .allocate(capacity: all.count)
    runs.initialize(from: all, count: all.count)
    found = .allocate(capacity: 64)
    found.initialize(repeating: 0, count: 64)
  }

  deinit {
    quick.deallocate()
    runs.deallocate()
    found.deallocate()
  }

  /// Decodes this component's blocks of one unit.
  ///
  /// - Parameter target: The address of the upper left pixel; all blocks of the unit must fit.
  /// - Returns: Whether the codes are valid.
  mutating func decodeUnit(
    _ bits: inout JPEGBits, to target: UnsafeMutablePointer<Float>, stride: Int
  ) -> Bool {
    for row in 0..<blocks.down {
      for column in 0..<blocks.across {
        let corner = target + row * down * stride + column * across
        let count = readBlock(&bits, to: found)
        guard count >= 0 else { return false }
        sum.paint(mean: mean, found, count, to: corner, stride: stride)
      }
    }
    return true
  }

  /// Reads the DC value of a block.
  private mutating func readMean(_ bits: inout JPEGBits) -> Bool {
    bits.refill()
    let difference = Self.next(&bits, quick: quick, table: dc)
    guard difference.advance >= 0, abs(mean &+ difference.number) <= Self.highestMean
    else { return false }
    mean &+= difference.number
    return true
  }

  /// Reads a block: its DC value, and the nonzero coefficients up to `last`.
  ///
  /// - Parameter words: Receives the coefficients, at most `last`.
  /// - Returns: The number of those coefficients; -1 for invalid codes.
  private mutating func readBlock(
    _ bits: inout JPEGBits, to words: UnsafeMutablePointer<UInt32>
  ) -> Int {
    guard readMean(&bits) else { return -1 }
    let table = quick + Self.quickCount
    // Copies that stay in registers between the few calls that need `bits` itself.
    var window = bits.window
    var place = 0
    var found = 0
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
        let next = Self.next(&bits, quick: table, table: ac)
        guard next.advance > 0 else { return -1 }
        window = bits.window
        place &+= next.advance
        number = next.number
      }
      guard place < 64 else {
        bits.window = window
        return found
      }
      words[found] = JPEGCoefficient.packed(number, at: place)
      found &+= 1
    }
    bits.window = window
    return skipRest(&bits, from: place) ? found : -1
  }

  /// Skips the rest of a block, several codes at a time.
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
      // Bits after the last coefficient belong to the next block, even if they look like an
      // end-of-block code.
      if packed & 63 != 0 && (reached < 63 || reached == 63 && !isEnd) {
        window.bits &<<= UInt64(packed & 63)
        window.count &-= Int(packed & 63)
        place = isEnd ? 64 : reached
      } else {
        bits.window = window
        let next = Self.next(&bits, quick: quick + Self.quickCount, table: ac)
        guard next.advance > 0 else { return false }
        window = bits.window
        place &+= next.advance
      }
    }
    bits.window = window
    return true
  }

  private static let quickShift = UInt64(64 - JPEGHuffmanTable.quickBits)

  /// Reads a code and the number after it, together at most 31 bits.
  ///
  /// - Returns: An `advance` of -1 for an invalid code.
  @inline(never)
  private static func next(
    _ bits: inout JPEGBits, quick: UnsafeMutablePointer<UInt32>,
    table: borrowing JPEGHuffmanTable
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

/// Sums up the patterns of a block's coefficients. Lookup tables are in manually allocated memory,
/// because arrays would cost reference counting for each block.
struct JPEGBlockSum: ~Copyable {
  /// The pixels that a block is reduced to.
  private let size: (across: Int, down: Int)
  /// `JPEGBasis.pitch`.
  private let pitch: Int
  /// `JPEGBasis.count`.
  private let count: Int
  /// `JPEGBasis.patterns`. Owned; freed by `deinit`.
  private let patterns: UnsafeMutablePointer<Float>
  /// The pixels of a block. Owned; freed by `deinit`.
  private let block: UnsafeMutablePointer<Float>

  init(_ basis: JPEGBasis) {
    size = basis.size
    pitch = basis.pitch
    count = basis.count
    patterns = .allocate(capacity: basis.patterns.count)
    patterns.initialize(from: basis.patterns, count: basis.patterns.count)
    block = .allocate(capacity: 64)
    block.initialize(repeating: 0, count: 64)
  }

  deinit {
    patterns.deallocate()
    block.deallocate()
  }

  /// Writes the pixels of a block.
  ///
  /// - Parameters:
  ///   - coefficients: The other coefficients that are not zero, as `JPEGCoefficient` packs them.
  ///   - corner: The address of the upper left pixel.
  @inline(__always)
  func paint(
    mean: Int, _ coefficients: UnsafePointer<UInt32>, _ found: Int,
    to corner: UnsafeMutablePointer<Float>, stride: Int
  ) {
    // Samples are stored with 128 subtracted (T.81, A.3.1).
    let ground = patterns[0] * Float(mean) + 128
    switch count {
    case 1: corner[0] = ground
    case 4: add(SIMD4<Float>.self, coefficients, found, ground, to: corner, stride: stride)
    case 16: add(SIMD16<Float>.self, coefficients, found, ground, to: corner, stride: stride)
    default: addAny(coefficients, found, ground, to: corner, stride: stride)
    }
  }

  @inline(__always)
  private func add<Pixels: SIMD>(
    _: Pixels.Type, _ coefficients: UnsafePointer<UInt32>, _ found: Int, _ ground: Float,
    to corner: UnsafeMutablePointer<Float>, stride: Int
  ) where Pixels.Scalar == Float {
    let patterns = UnsafeRawPointer(patterns)
    var pixels = Pixels(repeating: ground)
    for index in 0..<found {
      let (number, place) = JPEGCoefficient.unpacked(coefficients[index])
      let offset = place &* Pixels.scalarCount &* 4
      pixels += patterns.loadUnaligned(fromByteOffset: offset, as: Pixels.self) * number
    }
    UnsafeMutableRawPointer(block).storeBytes(of: pixels, as: Pixels.self)
    put(to: corner, stride: stride)
  }

  /// Sums up other numbers of pixels, up to 64, which exceed the registers.
  private func addAny(
    _ coefficients: UnsafePointer<UInt32>, _ found: Int, _ ground: Float,
    to corner: UnsafeMutablePointer<Float>, stride: Int
  ) {
    block.update(repeating: ground, count: count)
    for index in 0..<found {
      let (number, place) = JPEGCoefficient.unpacked(coefficients[index])
      let pattern = patterns + place &* count
      for pixel in 0..<count { block[pixel] += pattern[pixel] * number }
    }
    put(to: corner, stride: stride)
  }

  @inline(__always)
  private func put(to corner: UnsafeMutablePointer<Float>, stride: Int) {
    for y in 0..<size.down {
      for x in 0..<size.across { corner[y &* stride &+ x] = block[y &* pitch &+ x] }
    }
  }
}

/// A coefficient with its place in the block, in one word.
enum JPEGCoefficient {
  /// - Parameters:
  ///   - number: The coefficient: 16 bits with its sign.
  ///   - place: Its place in file order.
  @inline(__always)
  static func packed(_ number: Int, at place: Int) -> UInt32 {
    UInt32(truncatingIfNeeded: place) &<< 16 | UInt32(UInt16(truncatingIfNeeded: number))
  }

  @inline(__always)
  static func unpacked(_ word: UInt32) -> (number: Float, place: Int) {
    (Float(Int16(truncatingIfNeeded: word)), Int(word &>> 16))
  }
}

/// An inverse cosine transform of the lowest frequencies only: as many as the reduced block has
/// pixels. Higher frequencies would alias.
///
/// The transform is a sum with one pattern for each coefficient. Zero coefficients, which are the
/// majority, cost nothing. The result is closer to Lanczos3 from the full image than libjpeg's
/// averages of pixels.
struct JPEGBasis {
  /// The pixels that a block is reduced to, across and down: 1–4, 6 or 8.
  let size: (across: Int, down: Int)
  /// The values from one row of a pattern to the next.
  let pitch: Int
  /// The values of a pattern. Of 3 by 3 pixels it has 16, which fill vectors; the excess is 0.
  let count: Int
  /// For each coefficient in file order, `count` values, one for each pixel of a block, row by row.
  let patterns: [Float]
  /// The last coefficient with a pattern other than zero.
  let last: Int

  /// Computes the patterns.
  ///
  /// - Parameter quantization: The factors of the coefficients, in file order.
  init(across: Int, down: Int, quantization: [UInt16]) {
    size = (across, down)
    let isPadded = across == 3 && down == 3
    let pitch = isPadded ? 4 : across
    let count = isPadded ? 16 : across * down
    last = Self.last(across: across, down: down)
    let columns = Self.waves(across)
    let rows = Self.waves(down)
    patterns = zip(Self.zigzag, quantization).flatMap { place, factor in
      let u = place % 8
      let v = place / 8
      return (0..<count).map { index in
        let x = index % pitch
        let y = index / pitch
        return x < across && y < down ? Float(columns[x][u] * rows[y][v] * Double(factor)) : 0
      }
    }
    self.pitch = pitch
    self.count = count
  }

  /// Returns the last coefficient, in file order, that a block of this size shows.
  static func last(across: Int, down: Int) -> Int {
    zigzag.lastIndex { $0 % 8 < across && $0 / 8 < down } ?? 0
  }

  /// Returns the values of the 8 frequencies for each of `count` pixels of a side (T.81, A.3.3); 0
  /// for frequencies that are not representable.
  private static func waves(_ count: Int) -> [[Double]] {
    (0..<count).map { pixel in
      (0..<8).map { frequency in
        guard frequency < count else { return 0 }
        let scale = (frequency == 0 ? 0.5.squareRoot() : 1) / 2
        return scale * cos(Double((2 * pixel + 1) * frequency) * .pi / Double(2 * count))
      }
    }
  }

  /// The row-by-row position of each coefficient in file order (T.81, figure A.6).
  private static let zigzag: [Int] = {
    let diagonals = (0..<15).map { sum in
      // Even diagonals run up to the right, odd ones down to the left.
      let places = (max(0, sum - 7)...min(sum, 7)).map { x in (sum - x) * 8 + x }
      return sum.isMultiple(of: 2) ? places : places.reversed()
    }
    return diagonals.flatMap { $0 }
  }()
}

enum JPEGRow {
  /// Writes a row of pixels, 1 byte for each if there is only light, otherwise 3.
  ///
  /// - Parameters:
  ///   - light: `width` values.
  ///   - colours: Cb and Cr, `width` values each.
  ///   - row: Has room for 4 bytes after the last pixel but one.
  static func paint(
    _ light: UnsafePointer<Float>,
    colours: (blue: UnsafePointer<Float>, red: UnsafePointer<Float>)?, width: Int,
    into row: UnsafeMutablePointer<UInt8>
  ) {
    let out = UnsafeMutableRawPointer(row)
    guard let (blue, red) = colours else {
      for x in 0..<width { row[x] = bytes(SIMD4(repeating: light[x]))[0] }
      return
    }
    // The JFIF 1.02 conversion. Every component includes an offset of 128, which is subtracted from
    // both colour components.
    let byBlue = SIMD4<Float>(0, -0.344_136, 1.772, 0)
    let byRed = SIMD4<Float>(1.402, -0.714_136, 0, 0)
    for x in 0..<width {
      let color =
        SIMD4(repeating: light[x]) + byBlue * (blue[x] - 128) + byRed * (red[x] - 128)
      out.storeBytes(of: bytes(color), toByteOffset: x &* 3, as: SIMD4<UInt8>.self)
    }
  }

  /// Rounds values and clamps them to the range of a byte.
  @inline(__always)
  private static func bytes(_ values: SIMD4<Float>) -> SIMD4<UInt8> {
    // From 2^23 a float has no fraction, so adding 1.5 times that rounds, and leaves the integer in
    // the low bits. The standard library's conversion checks each value and is far slower.
    let magic: Float = 12_582_912
    // The trick fails only below about -12 million. A coefficient has 10 bits and its factor 8
    // (`JPEGQuantizers`), so a component stays within 4.3 million and a colour within 2.8 times
    // that.
    let whole =
      unsafeBitCast(values + magic, to: SIMD4<Int32>.self) &- Int32(bitPattern: magic.bitPattern)
    return SIMD4<UInt8>(
      truncatingIfNeeded: whole.clamped(lowerBound: .zero, upperBound: .init(repeating: 255)))
  }
}
