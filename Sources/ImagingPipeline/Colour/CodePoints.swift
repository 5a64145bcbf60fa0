// CodePoints: what numbers say about colours in place of a profile (ITU-T H.273), as far as Pictor acts on it.

/// Coding-independent code points (CICP): which light an image's numbers stand for.
///
/// Only what differs from sRGB has one. The cameras' curves of standard video (1, 6, 14, 15) count as sRGB's: images
/// in all of them are made to look right on the same displays. So do the primaries of older television, which are
/// within a few steps of sRGB's.
struct CodePoints: Equatable {
  /// H.273, table 2.
  enum Primaries: Equatable {
    /// BT.709, and so sRGB.
    case bt709
    /// BT.2020 and BT.2100.
    case bt2020
    /// SMPTE EG 432-1: Display P3.
    case displayP3
  }

  /// H.273, table 3.
  enum Transfer: Equatable {
    /// A display's usual curve.
    case standard
    /// Light itself.
    case linear
    /// SMPTE ST 2084: perceptual quantizer, absolute light up to 10,000 cd/m².
    case pq
    /// ARIB STD-B67: hybrid log-gamma, light relative to a display's.
    case hlg
  }

  let primaries: Primaries
  let transfer: Transfer
  /// Light of the brightest pixel in cd/m², where it is known.
  var peak: Double?

  /// - Parameters:
  ///   - primaries: `ColourPrimaries` of H.273.
  ///   - transfer: `TransferCharacteristics` of H.273.
  /// - Returns: `nil` when they are sRGB's, not known or left open.
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

  /// Whether there may be more light than white.
  var isHighDynamicRange: Bool { transfer == .pq || transfer == .hlg }
}

extension CodePoints.Primaries {
  /// Rows of the matrix from linear light in these primaries to BT.709's, all of white D65.
  var toBT709: [SIMD3<Float>] {
    switch self {
    case .bt709: [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    // ITU-R BT.2407, 2.
    case .bt2020:
      [
        [1.660_491, -0.587_641, -0.072_850], [-0.124_550, 1.132_900, -0.008_349],
        [-0.018_151, -0.100_579, 1.118_730],
      ]
    // CSS Color 4, 17: the sample code's two matrices multiplied.
    case .displayP3:
      [
        [1.224_940, -0.224_940, 0], [-0.042_057, 1.042_057, 0],
        [-0.019_638, -0.078_636, 1.098_274],
      ]
    }
  }
}
