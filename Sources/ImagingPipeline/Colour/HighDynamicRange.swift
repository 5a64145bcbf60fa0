// HighDynamicRange: converts images described by code points, including PQ and HLG, to sRGB.

import CVips
import Core
import Glibc

extension Image {
  /// Converts the image to sRGB: decodes values to light, tone-maps the range, converts the
  /// primaries, and clips what is outside sRGB.
  ///
  /// - Parameter codePoints: The colour space of the first three bands, or of a grey. Another band
  ///   is alpha.
  consuming func shown(_ codePoints: CodePoints) throws(ImageError) -> Image {
    let size = size
    let bands = min(bands, 4)
    let result = try Image(blank: size, bands: bands, profile: [])
    let row = UnsafeMutablePointer<UInt8>.allocate(capacity: size.width * bands)
    defer { row.deallocate() }
    let converter = LightConverter(codePoints, of: self, bands: bands)
    let rows = try PixelRows(of: self)
    for y in 0..<size.height {
      try converter.convert(rows.row(y), to: row, width: size.width)
      try result.write(row, row: y)
    }
    return result
  }
}

/// Converts rows of 8 or 16 bits per band.
private struct LightConverter {
  private let tables: LightTables
  private let matrix: [SIMD3<Float>]
  private let luminance: SIMD3<Float>
  private let scale: Float
  private let isWide: Bool
  /// The bands of a source pixel, and of a result pixel.
  private let stride: Int
  private let bands: Int
  /// The bands of colour: 1 for grey.
  private let colours: Int

  init(_ codePoints: CodePoints, of image: borrowing Image, bands: Int) {
    tables = LightTables(codePoints)
    matrix = codePoints.primaries.toBT709
    // H.273, table 2: the share of each primary in white.
    luminance =
      switch codePoints.primaries {
      case .bt709: [0.2126, 0.7152, 0.0722]
      case .bt2020: [0.2627, 0.6780, 0.0593]
      case .displayP3: [0.2290, 0.6917, 0.0793]
      }
    isWide = image.format == VIPS_FORMAT_USHORT
    scale = Float(1 / image.fullLight)
    stride = image.bands
    self.bands = bands
    colours = bands < 3 ? 1 : 3
  }

  /// Writes `width × bands` bytes.
  ///
  /// - Parameter row: `width` pixels of `stride` bands, with 1 or 2 bytes each.
  func convert(
    _ row: UnsafePointer<UInt8>, to result: UnsafeMutablePointer<UInt8>, width: Int
  ) {
    let bytes = UnsafeRawPointer(row)
    func signal(_ index: Int) -> Float {
      let value =
        isWide
        ? Float(bytes.loadUnaligned(fromByteOffset: index &* 2, as: UInt16.self))
        : Float(row[index])
      return value * scale
    }
    let red = matrix[0]
    let green = matrix[1]
    let blue = matrix[2]
    // Three equal bands stay equal in all primaries.
    let (second, third) = colours == 1 ? (0, 0) : (1, 2)
    for x in 0..<width {
      let from = x &* stride
      let to = x &* bands
      let light = tables.shown(
        SIMD3(
          tables.light(of: signal(from)), tables.light(of: signal(from &+ second)),
          tables.light(of: signal(from &+ third))), luminance: luminance)
      result[to] = tables.byte(of: (red * light).sum())
      if colours == 3 {
        result[to &+ 1] = tables.byte(of: (green * light).sum())
        result[to &+ 2] = tables.byte(of: (blue * light).sum())
      }
      if bands > colours {
        result[to &+ colours] = UInt8(min(1, signal(from &+ colours)) * 255 + 0.5)
      }
    }
  }
}

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

/// The curves of one image; light is relative to SDR white.
struct LightTables {
  /// The light of SDR white in cd/m², at which HDR's reference white is shown (ITU-R BT.2408, 2.1).
  static let white = 203.0
  /// The assumed light of the brightest pixel in cd/m² if the source does not specify it. HLG is
  /// defined for such a display (ITU-R BT.2100, table 5), and most PQ was mastered on one.
  static let usualPeak = 1_000.0

  /// The light for each signal, in 4,096 steps from 0 to 1.
  private let light: [Float]
  /// The factor by which the HLG display brightens scene light, by luminance; empty for all other
  /// curves.
  private let ootf: [Float]
  /// The tone-mapping factor of all bands, by the brightest band's light as a fraction of
  /// `brightest`.
  private let gain: [Float]
  /// The sRGB byte for each light.
  private let bytes: [UInt8]
  /// The greatest light that the tables distinguish; brighter pixels are clipped to it.
  private let brightest: Float

  private static let steps = 4_096

  init(_ codePoints: CodePoints) {
    let signal = (0...Self.steps).map { Double($0) / Double(Self.steps) }
    // Tables by light are indexed by its fourth root, which is close to human perception.
    let root = signal.map { $0 * $0 * $0 * $0 }
    let peak = max(Self.white, codePoints.peak ?? Self.usualPeak) / Self.white
    switch codePoints.transfer {
    case .standard: light = signal.map { Float(SRGB.light($0)) }
    case .linear: light = signal.map { Float($0) }
    case .pq: light = signal.map { Float(Self.pq($0) / Self.white) }
    case .hlg: light = signal.map { Float(Self.hlg($0)) }
    }
    let isHLG = codePoints.transfer == .hlg
    // BT.2100, table 5: 1,000 cd/m² and a system gamma of 1.2, which multiplies the bands by
    // luminance to the power of 0.2.
    ootf = isHLG ? root.map { Float(Self.usualPeak / Self.white * pow($0, 0.2)) } : []
    let reach = isHLG ? Self.usualPeak / Self.white : peak
    brightest = Float(codePoints.isHighDynamicRange ? reach : 1)
    gain =
      codePoints.isHighDynamicRange
      ? root.map { part in
        let light = part * reach
        return light > 0 ? Float(Self.toned(light, peak: reach) / light) : 1
      } : []
    bytes = root.map { UInt8((255 * SRGB.value($0)).rounded()) }
  }

  /// Returns the light of a signal from 0 to 1.
  @inline(__always)
  func light(of signal: Float) -> Float {
    let place = min(max(signal, 0), 1) * Float(Self.steps)
    let index = min(Int(place), Self.steps - 1)
    let low = light[index]
    return low + (light[index + 1] - low) * (place - Float(index))
  }

  /// Returns light as a display with SDR white shows it: tone-mapped, with unchanged hue.
  ///
  /// - Parameter luminance: The weights of the bands in luminance.
  @inline(__always)
  func shown(_ light: SIMD3<Float>, luminance: SIMD3<Float>) -> SIMD3<Float> {
    guard !gain.isEmpty else { return light }
    var light = light
    if !ootf.isEmpty { light *= ootf[Self.index((light * luminance).sum())] }
    let maximum = light.max()
    return maximum >= brightest ? light / maximum : light * gain[Self.index(maximum / brightest)]
  }

  /// Returns the sRGB byte for light from 0 to 1; other values are clipped.
  @inline(__always)
  func byte(of light: Float) -> UInt8 { bytes[Self.index(light)] }

  @inline(__always)
  private static func index(_ light: Float) -> Int {
    let root = min(max(light, 0), 1).squareRoot().squareRoot()
    return Int(root * Float(steps) + 0.5)
  }

  // MARK: Curves

  /// The constants of SMPTE ST 2084 (BT.2100, table 4), for both directions.
  private enum PQ {
    static let m1 = 2_610.0 / 16_384
    static let m2 = 2_523.0 / 4_096 * 128
    static let c1 = 3_424.0 / 4_096
    static let c2 = 2_413.0 / 4_096 * 32
    static let c3 = 2_392.0 / 4_096 * 32
  }

  /// Returns the light of a PQ signal in cd/m².
  private static func pq(_ signal: Double) -> Double {
    let value = pow(signal, 1 / PQ.m2)
    return 10_000 * pow(max(value - PQ.c1, 0) / (PQ.c2 - PQ.c3 * value), 1 / PQ.m1)
  }

  private static func pqSignal(_ light: Double) -> Double {
    let value = pow(light / 10_000, PQ.m1)
    return pow((PQ.c1 + PQ.c2 * value) / (1 + PQ.c3 * value), PQ.m2)
  }

  /// Returns the scene light of an HLG signal, from 0 to 1 (BT.2100, table 5: inverse OETF).
  private static func hlg(_ signal: Double) -> Double {
    let a = 0.178_832_77
    let b = 0.284_668_92
    let c = 0.559_910_73
    return signal <= 0.5 ? signal * signal / 3 : (exp((signal - c) / a) + b) / 12
  }

  /// Applies the tone curve of ITU-R BT.2390, 5.4: unchanged up to a knee, then bent so that the
  /// peak becomes white. Black stays black.
  private static func toned(_ light: Double, peak: Double) -> Double {
    let source = pqSignal(peak * white)
    let maximum = pqSignal(white) / source
    let knee = 1.5 * maximum - 0.5
    let value = pqSignal(light * white) / source
    guard value > knee, knee < 1 else { return light }
    let t = (value - knee) / (1 - knee)
    let t2 = t * t
    let t3 = t * t * t
    let bent =
      (2 * t3 - 3 * t2 + 1) * knee + (t3 - 2 * t2 + t) * (1 - knee) + (3 * t2 - 2 * t3) * maximum
    return pq(bent * source) / white
  }
}
