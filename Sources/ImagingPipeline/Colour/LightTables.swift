// LightTables: lookup tables for the curves between an image's values and light.

import Glibc

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
    case .standard: light = signal.map { Float(Self.standard($0)) }
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
    bytes = root.map { UInt8((255 * Self.sRGB($0)).rounded()) }
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

  /// Converts an sRGB value to light (IEC 61966-2-1).
  private static func standard(_ value: Double) -> Double {
    value <= 0.04045 ? value / 12.92 : pow((value + 0.055) / 1.055, 2.4)
  }

  /// Converts light to an sRGB value (IEC 61966-2-1).
  private static func sRGB(_ light: Double) -> Double {
    light <= 0.0031308 ? 12.92 * light : 1.055 * pow(light, 1 / 2.4) - 0.055
  }

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
