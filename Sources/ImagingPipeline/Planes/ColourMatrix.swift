// ColourMatrix: converts luma and colour differences to red, green and blue, and back.

import CVectors
import Core

/// The conversion of Y, Cb and Cr to RGB (ITU-T H.273, 8.3, MatrixCoefficients and
/// VideoFullRangeFlag).
struct ColourMatrix: Equatable {
  /// The fraction bits of a weight.
  private static let weightBits: Int32 = 13

  /// Y of black, in the scale of `PlaneRows`.
  private let black: Int16
  /// The weights of Y and Cr in red, of Y and Cb in green, of Cr in green, and of Y and Cb in blue;
  /// each pair in turn.
  private let red, green, greenOfRed, blue: SIMD8<Int16>

  /// Creates the conversion of a colour model, whose coefficients are those of H.273, table 4; 2
  /// (unspecified) counts as BT.601, as libheif has it.
  ///
  /// - Parameter depth: The bits of a sample, 8–14.
  /// - Returns: `nil` for models that are no such sum of luma and differences.
  init?(_ model: HEIFImage.ColourModel, depth: Int) {
    guard (8...PlaneRows.bits).contains(depth), let shares = Self.shares(model.coefficients)
    else {
      return nil
    }
    let shift = PlaneRows.bits - depth
    let full = 255.0 * Double(1 << PlaneRows.fractionBits) / Double(((1 << depth) - 1) << shift)
    black = model.isFullRange ? 0 : 16 << Int16(PlaneRows.fractionBits)
    let luma = model.isFullRange ? full : 255.0 / 219
    let colour = model.isFullRange ? full : 255.0 / 224
    let shareOfGreen = 1 - shares.red - shares.blue
    func pair(_ first: Double, _ second: Double) -> SIMD8<Int16> {
      SIMD8(pair: first, second, bits: Self.weightBits)
    }
    red = pair(luma, 2 * (1 - shares.red) * colour)
    blue = pair(luma, 2 * (1 - shares.blue) * colour)
    green = pair(luma, -2 * (1 - shares.blue) * shares.blue / shareOfGreen * colour)
    greenOfRed = pair(-2 * (1 - shares.red) * shares.red / shareOfGreen * colour, 0)
  }

  /// Whether a colour model is a sum of luma and differences.
  static func exists(for coefficients: Int) -> Bool { shares(coefficients) != nil }

  /// The shares of red and blue in luma.
  private static func shares(_ coefficients: Int) -> (red: Double, blue: Double)? {
    switch coefficients {
    case 1: (0.2126, 0.0722)
    case 2, 5, 6: (0.299, 0.114)
    case 9: (0.2627, 0.0593)
    default: nil
    }
  }

  /// Converts a row of values in the scale of `PlaneRows`.
  ///
  /// - Parameters:
  ///   - planes: Y, Cb and Cr; `width` values each, with room to read up to the next multiple of 8.
  ///   - pixels: Receives 3 bytes a pixel; with room for 8 pixels and a byte more.
  func convert(
    _ planes: (UnsafePointer<Int16>, UnsafePointer<Int16>, UnsafePointer<Int16>), width: Int,
    to pixels: UnsafeMutablePointer<UInt8>
  ) {
    typealias Values = SIMD8<Int16>
    let centre = Values(repeating: 1 << Int16(PlaneRows.bits - 1))
    let black = Values(repeating: black)
    let out = UnsafeMutableRawPointer(pixels)
    for x in stride(from: 0, to: width, by: 8) {
      func load(_ plane: UnsafePointer<Int16>) -> Values {
        UnsafeRawPointer(plane + x).loadUnaligned(as: Values.self)
      }
      let y = load(planes.0) &- black
      let cb = load(planes.1) &- centre
      let cr = load(planes.2) &- centre
      let r = Self.bytes(
        Self.sums(y, cr, red))
      let g = Self.bytes(Self.sums(y, cb, green) &+ Self.sums(cr, cr, greenOfRed))
      let b = Self.bytes(Self.sums(y, cb, blue))
      let packed = r | (g &<< 8) | (b &<< 16)
      // Each pixel is written as 4 bytes; the next pixel overwrites the excess.
      for index in 0..<8 {
        out.storeBytes(
          of: packed[index], toByteOffset: (x &+ index) &* 3, as: Int32.self)
      }
    }
  }

  @inline(__always)
  private static func sums(
    _ first: SIMD8<Int16>, _ second: SIMD8<Int16>, _ weights: SIMD8<Int16>
  ) -> SIMD8<Int32> {
    SIMD8(
      lowHalf: pictor_vectors_multiply_add(pictor_vectors_interleave_low(first, second), weights),
      highHalf: pictor_vectors_multiply_add(pictor_vectors_interleave_high(first, second), weights))
  }

  /// Rounds to 0–255.
  @inline(__always)
  private static func bytes(_ sums: SIMD8<Int32>) -> SIMD8<Int32> {
    let bits = weightBits + Int32(PlaneRows.fractionBits)
    let values = (sums &+ (1 << (bits - 1))) &>> bits
    return values.clamped(lowerBound: .zero, upperBound: .init(repeating: 255))
  }
}

/// The conversion of RGB to Y, Cb and Cr (ITU-R BT.601-7, 2.5), with a sample of Cb and Cr for four
/// pixels (4:2:0). It is the inverse of `ColourMatrix` for 8 bits of that model.
struct ChromaSubsampling {
  /// Where the samples of an image go. Cb and Cr have half of the luma's columns and rows, rounded
  /// up.
  struct Planes {
    let luma, cb, cr: Samples
  }

  /// The samples of a plane, and the bytes from a row to the next.
  struct Samples {
    let start: UnsafeMutablePointer<UInt8>
    let stride: Int

    init(_ start: UnsafeMutablePointer<UInt8>, stride: CInt) {
      self.start = start
      self.stride = Int(stride)
    }
  }

  /// Black is 0 and white 255, as in JFIF.
  static let fullRange = Self()

  /// The fraction bits of a weight.
  private static let bits: Int32 = 15
  /// The pixels of a step.
  private static let step = 8

  /// The weights of each plane.
  private let luma, cb, cr: Weights

  private init() {
    // BT.601's shares of luma.
    let (r, g, b) = (0.299, 0.587, 0.114)
    luma = Weights(red: r, green: g, blue: b)
    cb = Weights(red: -r / (1 - b) / 2, green: -g / (1 - b) / 2, blue: 0.5)
    cr = Weights(red: 0.5, green: -g / (1 - r) / 2, blue: -b / (1 - r) / 2)
  }

  /// Converts an image. A column or row without a neighbour counts twice.
  ///
  /// - Parameter pixels: Red, green and blue, row by row without gaps.
  func convert(_ pixels: UnsafePointer<UInt8>, _ size: PixelSize, to planes: Planes) {
    let stride = size.width * 3
    for y in Swift.stride(from: 0, to: size.height, by: 2) {
      let upper = pixels + y * stride
      let hasLower = y + 1 < size.height
      let first = planes.luma.start + y * planes.luma.stride
      convert(
        Rows(
          upper: upper, lower: hasLower ? upper + stride : upper, upperLuma: first,
          lowerLuma: hasLower ? first + planes.luma.stride : first,
          cb: planes.cb.start + y / 2 * planes.cb.stride,
          cr: planes.cr.start + y / 2 * planes.cr.stride),
        width: size.width)
    }
  }

  /// Two rows of pixels and their samples.
  private struct Rows {
    let upper, lower: UnsafePointer<UInt8>
    let upperLuma, lowerLuma, cb, cr: UnsafeMutablePointer<UInt8>
  }

  private func convert(_ rows: Rows, width: Int) {
    var x = 0
    // A step reads a byte more than its pixels.
    while x + Self.step < width {
      let (upper, lower) = (Block(rows.upper + 3 * x), Block(rows.lower + 3 * x))
      store(luma(of: upper), to: rows.upperLuma + x)
      store(luma(of: lower), to: rows.lowerLuma + x)
      let square = Square(upper, lower)
      store(colour(of: square, by: cb), to: rows.cb + x / 2)
      store(colour(of: square, by: cr), to: rows.cr + x / 2)
      x += Self.step
    }
    convertEnd(of: rows, from: x, width: width)
  }

  /// Converts the last pixels, at most a step; the last one repeats.
  private func convertEnd(of rows: Rows, from x: Int, width: Int) {
    let count = width - x
    func block(_ row: UnsafePointer<UInt8>) -> Block {
      var words = SIMD8<UInt32>()
      for index in 0..<Self.step {
        let pixel = row + 3 * (x + min(index, count - 1))
        words[index] = UInt32(pixel[0]) | UInt32(pixel[1]) << 8 | UInt32(pixel[2]) << 16
      }
      return Block(words)
    }
    let (upper, lower) = (block(rows.upper), block(rows.lower))
    let (upperLuma, lowerLuma) = (luma(of: upper), luma(of: lower))
    for index in 0..<count {
      rows.upperLuma[x + index] = upperLuma[index]
      rows.lowerLuma[x + index] = lowerLuma[index]
    }
    let square = Square(upper, lower)
    let (cb, cr) = (colour(of: square, by: cb), colour(of: square, by: cr))
    for index in 0..<(count + 1) / 2 {
      rows.cb[x / 2 + index] = cb[index]
      rows.cr[x / 2 + index] = cr[index]
    }
  }

  /// The samples of 8 pixels: red and blue in the halves of an element, green in the lower half.
  private struct Block {
    let redBlue, green: SIMD8<UInt32>

    /// Reads 25 bytes.
    @inline(__always)
    init(_ pixels: UnsafePointer<UInt8>) {
      let bytes = UnsafeRawPointer(pixels)
      var words = SIMD8<UInt32>()
      for index in 0..<8 {
        words[index] = UInt32(
          littleEndian: bytes.loadUnaligned(fromByteOffset: 3 &* index, as: UInt32.self))
      }
      self.init(words)
    }

    /// Splits red, green and blue from the lowest byte on.
    @inline(__always)
    init(_ words: SIMD8<UInt32>) {
      redBlue = words & 0x00ff_00ff
      green = (words &>> 8) & 0xff
    }
  }

  /// The sums of four pixels each: two of an upper and two of a lower row.
  private struct Square {
    let redBlue, green: SIMD4<UInt32>

    @inline(__always)
    init(_ upper: Block, _ lower: Block) {
      let redBlue = upper.redBlue &+ lower.redBlue
      let green = upper.green &+ lower.green
      self.redBlue = redBlue.evenHalf &+ redBlue.oddHalf
      self.green = green.evenHalf &+ green.oddHalf
    }
  }

  /// The weights of red and blue in turn, and those of green.
  private struct Weights {
    let redBlue, green: SIMD8<Int16>

    init(red: Double, green: Double, blue: Double) {
      redBlue = SIMD8(pair: red, blue, bits: bits)
      self.green = SIMD8(pair: green, 0, bits: bits)
    }

    @inline(__always)
    func sums(_ redBlue: SIMD4<UInt32>, _ green: SIMD4<UInt32>) -> SIMD4<Int32> {
      // Sound: both have 16 bytes. The lower half of an element comes first, as the processor is
      // little-endian.
      let first = unsafeBitCast(redBlue, to: SIMD8<Int16>.self)
      let second = unsafeBitCast(green, to: SIMD8<Int16>.self)
      return pictor_vectors_multiply_add(first, self.redBlue)
        &+ pictor_vectors_multiply_add(second, self.green)
    }
  }

  @inline(__always)
  private func luma(of block: Block) -> SIMD8<UInt8> {
    let sums = SIMD8(
      lowHalf: luma.sums(block.redBlue.lowHalf, block.green.lowHalf),
      highHalf: luma.sums(block.redBlue.highHalf, block.green.highHalf))
    let half: Int32 = 1 &<< (Self.bits - 1)
    return SIMD8(truncatingIfNeeded: (sums &+ half) &>> Self.bits)
  }

  @inline(__always)
  private func colour(of square: Square, by weights: Weights) -> SIMD4<UInt8> {
    // 128 and a half, of sums of four.
    let centre: Int32 = 257 &<< (Self.bits + 1)
    let sums = weights.sums(square.redBlue, square.green) &+ centre
    let values = sums &>> (Self.bits + 2)
    return SIMD4(
      truncatingIfNeeded: values.clamped(
        lowerBound: .zero, upperBound: .init(repeating: 255)))
  }

  @inline(__always)
  private func store<Vector: BitwiseCopyable>(_ values: Vector, to row: UnsafeMutablePointer<UInt8>)
  {
    UnsafeMutableRawPointer(row).storeBytes(of: values, as: Vector.self)
  }
}

extension SIMD8<Int16> {
  /// Two weights in turn, as integers with `bits` fraction bits.
  fileprivate init(pair first: Double, _ second: Double, bits: Int32) {
    let unit = Double(1 << bits)
    let (first, second) = (Int16((first * unit).rounded()), Int16((second * unit).rounded()))
    self = [first, second, first, second, first, second, first, second]
  }
}
