// Depth: from 16 bits and floats a band to 8 bits, each value to the nearest.

import CVips
import Model

extension Image {
  /// Whether full light is 16 bits.
  var has16Bits: Bool {
    interpretation == VIPS_INTERPRETATION_RGB16 || interpretation == VIPS_INTERPRETATION_GREY16
  }

  /// The number that full light has: 255, or 65,535 at 16 bits; less where libheif decoded 10 or 12 bits, which libvips
  /// shifts up and leaves zeros below.
  var fullLight: Double {
    guard has16Bits else { return 255 }
    guard let bits = integer("heif-bitdepth"), (9...16).contains(bits) else { return 65_535 }
    return Double((1 << bits - 1) << (16 - bits))
  }

  /// Sixteen bits made eight.
  ///
  /// libvips drops the lower 8 bits, which makes an image darker by half a step on average, and dark slopes visibly so.
  consuming func in8Bits() throws(ImageError) -> Image {
    let meaning = bands < 3 ? VIPS_INTERPRETATION_B_W : VIPS_INTERPRETATION_sRGB
    let image = try roundedToBytes(by: 255 / fullLight)
    return try image.made("depth") { pictor_vips_copy_as($0, $1, meaning) }
  }

  /// Its values, multiplied, as whole numbers from 0 to 255.
  func roundedToBytes(by factor: Double) throws(ImageError) -> Image {
    // libvips drops what is behind the point.
    try made("depth") { pictor_vips_linear1($0, $1, factor, 0.5, 1) }
  }

  /// Floats as 16 bits, where they are not linear light without a profile, which libvips knows how to convert.
  ///
  /// Float TIFFs, and what libvips makes of a JPEG XL, hold the profile's own numbers from 0 to 1; littleCMS is handed
  /// whole ones.
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
