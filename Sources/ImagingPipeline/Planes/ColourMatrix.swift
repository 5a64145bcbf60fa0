// ColourMatrix: converts luma and colour differences to red, green and blue.

import CVectors

/// The conversion of Y, Cb and Cr to RGB (ITU-T H.273, 8.3, MatrixCoefficients and VideoFullRangeFlag).
struct ColourMatrix: Equatable {
  /// The fraction bits of a weight.
  private static let weightBits: Int32 = 13

  /// Y of black, in the scale of `PlaneRows`.
  private let black: Int16
  /// The weights of Y and Cr in red, of Y and Cb in green, of Cr in green, and of Y and Cb in blue; each pair in turn.
  private let red, green, greenOfRed, blue: SIMD8<Int16>

  /// Creates a conversion.
  ///
  /// - Parameters:
  ///   - coefficients: MatrixCoefficients (H.273, table 4); 2 (unspecified) counts as BT.601, as libheif has it.
  ///   - isFullRange: Whether black is 0 and white is the highest value.
  ///   - depth: The bits of a sample, 8–14.
  /// - Returns: `nil` for models that are no such sum of luma and differences.
  init?(coefficients: Int, isFullRange: Bool, depth: Int) {
    guard (8...PlaneRows.bits).contains(depth), let shares = Self.shares(coefficients) else {
      return nil
    }
    let shift = PlaneRows.bits - depth
    let full = 255.0 * Double(1 << PlaneRows.fractionBits) / Double(((1 << depth) - 1) << shift)
    black = isFullRange ? 0 : 16 << Int16(PlaneRows.fractionBits)
    let luma = isFullRange ? full : 255.0 / 219
    let colour = isFullRange ? full : 255.0 / 224
    let shareOfGreen = 1 - shares.red - shares.blue
    func pair(_ first: Double, _ second: Double) -> SIMD8<Int16> {
      let unit = Double(1 << Self.weightBits)
      let (first, second) = (Int16((first * unit).rounded()), Int16((second * unit).rounded()))
      return [first, second, first, second, first, second, first, second]
    }
    red = pair(luma, 2 * (1 - shares.red) * colour)
    blue = pair(luma, 2 * (1 - shares.blue) * colour)
    green = pair(luma, -2 * (1 - shares.blue) * shares.blue / shareOfGreen * colour)
    greenOfRed = pair(-2 * (1 - shares.red) * shares.red / shareOfGreen * colour, 0)
  }

  /// Creates the conversion of a colour model.
  ///
  /// - Returns: As the other initializer.
  init?(_ model: HEIFImage.ColourModel, depth: Int) {
    self.init(
      coefficients: model.coefficients, isFullRange: model.isFullRange, depth: depth)
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
