// Depth: converts 16-bit integer and float bands to 8 bits with rounding.

import CVips
import Model

extension Image {
  /// Whether full light is a 16-bit value.
  var has16Bits: Bool {
    interpretation == VIPS_INTERPRETATION_RGB16 || interpretation == VIPS_INTERPRETATION_GREY16
  }

  /// The value of full light: 255, or 65,535 at 16 bits. For 10 or 12 bits from libheif the value
  /// is lower, because libvips shifts them up and leaves zeros below.
  var fullLight: Double {
    guard has16Bits else { return 255 }
    guard let bits = integer("heif-bitdepth"), (9...16).contains(bits) else { return 65_535 }
    return Double((1 << bits - 1) << (16 - bits))
  }

  /// Converts 16 bits to 8 with rounding.
  ///
  /// libvips truncates the lower 8 bits, which darkens an image by half a step on average, visibly
  /// so in dark gradients.
  consuming func in8Bits() throws(ImageError) -> Image {
    let meaning = bands < 3 ? VIPS_INTERPRETATION_B_W : VIPS_INTERPRETATION_sRGB
    let image = try roundedToBytes(by: 255 / fullLight)
    return try image.made("depth") { pictor_vips_copy_as($0, $1, meaning) }
  }

  /// Returns the values multiplied by `factor`, as integers from 0 to 255.
  func roundedToBytes(by factor: Double) throws(ImageError) -> Image {
    // libvips truncates the fraction, so adding 0.5 rounds.
    try made("depth") { pictor_vips_linear1($0, $1, factor, 0.5, 1) }
  }

  /// Converts floats to 16-bit integers, except for linear light without a profile, which libvips
  /// converts itself.
  ///
  /// Float TIFFs, and libvips's images of JPEG XL, hold values from 0 to 1 in the profile's colour
  /// space. littleCMS receives integers.
  consuming func inWholeNumbers() throws(ImageError) -> Image {
    guard format == VIPS_FORMAT_FLOAT else { return self }
    let meaning: VipsInterpretation
    switch interpretation {
    case VIPS_INTERPRETATION_B_W: meaning = VIPS_INTERPRETATION_GREY16
    case VIPS_INTERPRETATION_scRGB where !foreignProfile.isEmpty:
      meaning = VIPS_INTERPRETATION_RGB16
    default: return self
    }
    let wide = try made("depth") { pictor_vips_linear1($0, $1, 65_535, 0.5, 0) }
    let whole = try wide.cast(to: VIPS_FORMAT_USHORT)
    return try whole.made("depth") { pictor_vips_copy_as($0, $1, meaning) }
  }
}
