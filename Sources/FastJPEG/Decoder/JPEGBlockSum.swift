// JPEGBlockSum: computes the pixels of a reduced block from its coefficients.

/// Sums up the patterns of a block's coefficients, as `JPEGComponentDecoder` does while it reads them.
struct JPEGBlockSum: ~Copyable {
  private let size: (across: Int, down: Int)
  private let pitch: Int
  private let count: Int
  /// `JPEGBasis.patterns`. Owned; freed by `deinit`.
  private let patterns: UnsafeMutablePointer<Float>
  /// The pixels of a block. Owned; freed by `deinit`.
  private let block: UnsafeMutablePointer<Float>

  /// The highest DC and AC coefficients of 8-bit samples (T.81, F.1.2), on which `JPEGRow` relies. Damage may exceed them.
  private static let highest: (mean: Int16, detail: Int16) = (2_047, 1_023)

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
  ///   - coefficients: The first `kept` coefficients, in file order.
  ///   - corner: The address of the upper left pixel.
  ///   - stride: The number of values from one row to the next.
  @inline(__always)
  func paint(
    _ coefficients: UnsafePointer<Int16>, kept: Int, to corner: UnsafeMutablePointer<Float>,
    stride: Int
  ) {
    let mean = min(max(coefficients[0], -Self.highest.mean), Self.highest.mean)
    // Samples are stored with 128 subtracted (T.81, A.3.1).
    let ground = patterns[0] * Float(mean) + 128
    switch count {
    case 1: corner[0] = ground
    case 4: sum(SIMD4<Float>.self, coefficients, kept, ground, to: corner, stride: stride)
    case 16: sum(SIMD16<Float>.self, coefficients, kept, ground, to: corner, stride: stride)
    default:
      block.update(repeating: ground, count: count)
      for place in 1..<kept where coefficients[place] != 0 {
        let pattern = patterns + place &* count
        let number = Self.number(coefficients[place])
        for pixel in 0..<count { block[pixel] += pattern[pixel] * number }
      }
      put(to: corner, stride: stride)
    }
  }

  @inline(__always)
  private func sum<Pixels: SIMD>(
    _: Pixels.Type, _ coefficients: UnsafePointer<Int16>, _ kept: Int, _ ground: Float,
    to corner: UnsafeMutablePointer<Float>, stride: Int
  ) where Pixels.Scalar == Float {
    let patterns = UnsafeRawPointer(patterns)
    var pixels = Pixels(repeating: ground)
    for place in 1..<kept where coefficients[place] != 0 {
      let offset = place &* Pixels.scalarCount &* 4
      pixels +=
        patterns.loadUnaligned(fromByteOffset: offset, as: Pixels.self)
        * Self.number(coefficients[place])
    }
    UnsafeMutableRawPointer(block).storeBytes(of: pixels, as: Pixels.self)
    put(to: corner, stride: stride)
  }

  @inline(__always)
  private static func number(_ coefficient: Int16) -> Float {
    Float(min(max(coefficient, -highest.detail), highest.detail))
  }

  @inline(__always)
  private func put(to corner: UnsafeMutablePointer<Float>, stride: Int) {
    for y in 0..<size.down {
      for x in 0..<size.across { corner[y &* stride &+ x] = block[y &* pitch &+ x] }
    }
  }
}
