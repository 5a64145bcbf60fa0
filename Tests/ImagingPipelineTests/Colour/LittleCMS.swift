// LittleCMS: profiles and conversions by littleCMS alone, as a reference for colours.

import CLcms
import TestSupport

enum LittleCMS {
  /// The chromaticities of the primaries and white, x and y each.
  struct Primaries {
    let white, red, green, blue: (x: Double, y: Double)
  }

  static let displayP3 = Primaries(
    white: (0.3127, 0.3290), red: (0.680, 0.320), green: (0.265, 0.690), blue: (0.150, 0.060))
  static let sRGB = Primaries(
    white: (0.3127, 0.3290), red: (0.64, 0.33), green: (0.30, 0.60), blue: (0.15, 0.06))
  static let adobeRGB = Primaries(
    white: (0.3127, 0.3290), red: (0.64, 0.33), green: (0.21, 0.71), blue: (0.15, 0.06))
  /// ROMM RGB (ISO 22028-2), with a white of D50.
  static let proPhoto = Primaries(
    white: (0.3457, 0.3585), red: (0.7347, 0.2653), green: (0.1596, 0.8404),
    blue: (0.0366, 0.0001))

  // MARK: Profiles

  /// Returns a profile of three primaries and a curve: sRGB's, or a power.
  static func profile(_ primaries: Primaries, gamma: Double? = nil) -> [UInt8] {
    var white = xyY(primaries.white)
    var triple = cmsCIExyYTRIPLE(
      Red: xyY(primaries.red), Green: xyY(primaries.green), Blue: xyY(primaries.blue))
    let curve = curve(gamma)
    defer { cmsFreeToneCurve(curve) }
    return bytes(of: cmsCreateRGBProfile(&white, &triple, [curve, curve, curve]))
  }

  /// Returns a grey profile with a power curve.
  static func greyProfile(
    gamma: Double, white: (x: Double, y: Double) = (0.3457, 0.3585)
  ) -> [UInt8] {
    var white = xyY(white)
    let curve = curve(gamma)
    defer { cmsFreeToneCurve(curve) }
    return bytes(of: cmsCreateGrayProfile(&white, curve))
  }

  /// Returns a table profile from RGB or CMYK to Lab, like printers': no full black, a gamut
  /// smaller than a screen's, and tables for the intents perceptual, relative, saturation.
  static func tableProfile(
    inks: Bool, for intents: [cmsTagSignature] = [cmsSigAToB0Tag, cmsSigAToB1Tag]
  ) -> [UInt8] {
    let profile = cmsCreateProfilePlaceholder(nil)
    cmsSetProfileVersion(profile, 2.4)
    cmsSetDeviceClass(profile, cmsSigOutputClass)
    cmsSetColorSpace(profile, inks ? cmsSigCmykData : cmsSigRgbData)
    cmsSetPCS(profile, cmsSigLabData)
    let channels: UInt32 = inks ? 4 : 3
    let pipeline = cmsPipelineAlloc(nil, channels, 3)
    defer { cmsPipelineFree(pipeline) }
    let table = cmsStageAllocCLut16bit(nil, 9, channels, 3, nil)
    cmsStageSampleCLut16bit(
      table,
      { input, output, cargo in
        guard let input, let output else { return 0 }
        // The cargo is used only for inks.
        var rgb = (0..<3).map { Double(input[$0]) / 65_535 }
        if cargo != nil {
          let black = Double(input[3]) / 65_535
          rgb = rgb.map { (1 - $0) * (1 - 0.9 * black) }
        }
        let y = 0.3 * rgb[0] + 0.6 * rgb[1] + 0.1 * rgb[2]
        // Lab in lut16Type of version 2: 0xff00 is L 100, 0x8000 is 0 of a and b.
        output[0] = UInt16(65_280 * (0.1 + 0.9 * y))
        output[1] = UInt16(32_768 + 12_000 * (rgb[0] - rgb[1]))
        output[2] = UInt16(32_768 + 12_000 * (y - rgb[2]))
        return 1
      }, inks ? UnsafeMutableRawPointer(bitPattern: 1) : nil, 0)
    cmsPipelineInsertStage(pipeline, cmsAT_BEGIN, table)
    for tag in intents {
      cmsWriteTag(profile, tag, UnsafeRawPointer(pipeline))
    }
    return bytes(of: profile)
  }

  // MARK: Conversions

  /// Converts values from a profile, or from Lab without one, to sRGB: relative colorimetric, with
  /// black point compensation.
  ///
  /// - Parameters:
  ///   - values: `UInt8`, `UInt16` or `Double`, with `bands` values per pixel.
  ///   - intent: lcms's number of another rendering intent.
  static func sRGB<Value>(
    of values: [Value], bands: Int, profile: [UInt8]?, intent: CInt = INTENT_RELATIVE_COLORIMETRIC
  ) -> [UInt8] {
    let input =
      profile.map { cmsOpenProfileFromMem($0, UInt32($0.count)) } ?? cmsCreateLab4Profile(nil)
    let output = cmsCreate_sRGBProfile()
    defer {
      cmsCloseProfile(input)
      cmsCloseProfile(output)
    }
    // lcms2.h: bytes per sample in the lowest 3 bits, 0 for double; channels above; the colour
    // space at bit 16, the float flag at 22.
    let size = MemoryLayout<Value>.size
    let format = UInt32(size == 8 ? 1 << 22 | 10 << 16 : size) | UInt32(bands) << 3
    let transform = cmsCreateTransform(
      input, format, output, 4 << 16 | 3 << 3 | 1, UInt32(intent),
      UInt32(cmsFLAGS_BLACKPOINTCOMPENSATION | cmsFLAGS_NOOPTIMIZE))
    defer { cmsDeleteTransform(transform) }
    let count = values.count / bands
    var result = [UInt8](repeating: 0, count: count * 3)
    values.withUnsafeBytes { cmsDoTransform(transform, $0.baseAddress, &result, UInt32(count)) }
    return result
  }

  private static func xyY(_ point: (x: Double, y: Double)) -> cmsCIExyY {
    cmsCIExyY(x: point.x, y: point.y, Y: 1)
  }

  private static func curve(_ gamma: Double?) -> OpaquePointer? {
    // Type 4 of lcms's parametric curves has the form of IEC 61966-2-1.
    gamma.map { cmsBuildGamma(nil, $0) }
      ?? cmsBuildParametricToneCurve(
        nil, 4, [2.4, 1 / 1.055, 0.055 / 1.055, 1 / 12.92, 0.04045])
  }

  private static func bytes(of profile: cmsHPROFILE?) -> [UInt8] {
    defer { cmsCloseProfile(profile) }
    var count: UInt32 = 0
    cmsSaveProfileToMem(profile, nil, &count)
    var bytes = [UInt8](repeating: 0, count: Int(count))
    cmsSaveProfileToMem(profile, &bytes, &count)
    return bytes
  }
}
