// JPEGBlockSum: computes the pixels of a reduced block from its coefficients.

/// Sums up the patterns of a block's coefficients. Lookup tables are in manually allocated memory, because arrays would
/// cost reference counting for each block.
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
  ///   - mean: The DC coefficient.
  ///   - coefficients: The other coefficients that are not zero, as `JPEGCoefficient` packs them.
  ///   - found: The number of those.
  ///   - corner: The address of the upper left pixel.
  ///   - stride: The number of values from one row to the next.
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
