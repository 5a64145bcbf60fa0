// ChromaSubsampling: converts red, green and blue to luma and to colours of half the resolution.

import CVectors
import Model

/// The conversion of RGB to Y, Cb and Cr (ITU-R BT.601-7, 2.5), with a sample of Cb and Cr for four pixels (4:2:0). It is the
/// inverse of `ColourMatrix` for 8 bits of that model.
struct ChromaSubsampling {
  /// Where the samples of an image go. Cb and Cr have half of the luma's columns and rows, rounded up.
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
      let unit = Double(1 << bits)
      func pair(_ first: Double, _ second: Double) -> SIMD8<Int16> {
        let (first, second) = (Int16((first * unit).rounded()), Int16((second * unit).rounded()))
        return [first, second, first, second, first, second, first, second]
      }
      redBlue = pair(red, blue)
      self.green = pair(green, 0)
    }

    @inline(__always)
    func sums(_ redBlue: SIMD4<UInt32>, _ green: SIMD4<UInt32>) -> SIMD4<Int32> {
      // Sound: both have 16 bytes. The lower half of an element comes first, as the processor is little-endian.
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
