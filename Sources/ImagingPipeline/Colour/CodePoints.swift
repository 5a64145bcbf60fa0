// CodePoints: colour descriptions by numbers in place of a profile (ITU-T H.273).

/// Coding-independent code points (CICP): the colour space of an image's values.
///
/// A value exists only for colours that differ from sRGB. The transfer curves of standard video (1,
/// 6, 14, 15) count as sRGB, because images in all of them look right on the same displays. The
/// primaries of older television also count as sRGB, from which they differ little.
struct CodePoints: Equatable {
  /// The colour primaries (H.273, table 2).
  enum Primaries: Equatable {
    /// BT.709, which sRGB shares.
    case bt709
    /// BT.2020 and BT.2100.
    case bt2020
    /// SMPTE EG 432-1: Display P3.
    case displayP3
  }

  /// The transfer characteristics (H.273, table 3).
  enum Transfer: Equatable {
    /// The usual curve of displays.
    case standard
    /// Linear light.
    case linear
    /// SMPTE ST 2084: perceptual quantizer, absolute light up to 10,000 cd/m².
    case pq
    /// ARIB STD-B67: hybrid log-gamma, light relative to a display's.
    case hlg
  }

  let primaries: Primaries
  let transfer: Transfer
  /// The light of the brightest pixel in cd/m², if known.
  var peak: Double?

  /// Creates code points.
  ///
  /// - Parameters:
  ///   - primaries: `ColourPrimaries` of H.273.
  ///   - transfer: `TransferCharacteristics` of H.273.
  /// - Returns: `nil` if the values describe sRGB, or are unknown or unspecified.
  init?(primaries: Int, transfer: Int, peak: Double? = nil) {
    self.primaries =
      switch primaries {
      case 9: .bt2020
      case 12: .displayP3
      default: .bt709
      }
    self.transfer =
      switch transfer {
      case 8: .linear
      case 16: .pq
      case 18: .hlg
      default: .standard
      }
    self.peak = peak
    if self.primaries == .bt709 && self.transfer == .standard { return nil }
  }

  /// Whether light may exceed SDR white.
  var isHighDynamicRange: Bool { transfer == .pq || transfer == .hlg }
}

extension CodePoints.Primaries {
  /// The rows of the matrix from linear light in these primaries to BT.709, all with a white of
  /// D65.
  var toBT709: [SIMD3<Float>] {
    switch self {
    case .bt709: [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    // ITU-R BT.2407, 2.
    case .bt2020:
      [
        [1.660_491, -0.587_641, -0.072_850], [-0.124_550, 1.132_900, -0.008_349],
        [-0.018_151, -0.100_579, 1.118_730],
      ]
    // CSS Color 4, 17: the product of two matrices of the sample code.
    case .displayP3:
      [
        [1.224_940, -0.224_940, 0], [-0.042_057, 1.042_057, 0],
        [-0.019_638, -0.078_636, 1.098_274],
      ]
    }
  }
}
