// JPEGUnitPainter: computes the pixels of units that have been read.

/// Sums up the coefficients of units, as `ScaledJPEGDecoder` does while it reads them.
struct JPEGUnitPainter: ~Copyable {
  private let bands: Int
  /// One decoder for each component. Owned; freed by `deinit`.
  private let decoders: UnsafeMutablePointer<JPEGComponentDecoder>

  init(_ frame: JPEGFrame, bases: [JPEGBasis]) {
    bands = frame.components.count
    decoders = .allocate(capacity: bands)
    for (index, basis) in bases.enumerated() {
      (decoders + index).initialize(to: JPEGComponentDecoder(frame.components[index], basis: basis))
    }
  }

  deinit {
    decoders.deinitialize(count: bands)
    decoders.deallocate()
  }

  /// Writes the pixels of a unit.
  ///
  /// - Parameters:
  ///   - unit: Its words, and what the means of each component are relative to.
  ///   - target: The address of its upper left pixel in the plane of the first component.
  ///   - stride: The number of values from one row to the next.
  ///   - plane: The number of values from one component to the next.
  /// - Returns: Whether the means are valid.
  func paint(
    _ unit: (words: UnsafePointer<UInt32>, means: SIMD4<Int>),
    to target: UnsafeMutablePointer<Float>,
    stride: Int, plane: Int
  ) -> Bool {
    var words = unit.words
    for index in 0..<bands {
      guard
        decoders[index].paintUnit(
          &words, relativeTo: unit.means[index], to: target + index * plane, stride: stride)
      else { return false }
    }
    return true
  }
}
