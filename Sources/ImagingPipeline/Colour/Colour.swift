// Colour: converts a source's colours to sRGB or grey with 8 bits per band.

import CVips
import Core

/// ICC profiles are applied with the relative colorimetric intent and black point compensation. A
/// profile that has tables for other intents alone is applied with the first of these, as lcms
/// would; libvips refuses it otherwise. Colours within sRGB stay the same, shadows keep their
/// detail, and other colours are clipped.
extension Image {
  /// Converts colours that cannot be resized directly. CMYK and Lab values must not be averaged,
  /// and the black band of CMYK would be taken for alpha.
  consuming func readyForResize() throws(ImageError) -> Image {
    switch interpretation {
    case VIPS_INTERPRETATION_CMYK:
      if !foreignProfile.isEmpty, let image = try? applyingProfile(else: "cmyk") {
        return image
      }
      VipsLibrary.tidyUp()
      return try applyingProfile(isEmbedded: false, else: "cmyk")
    case VIPS_INTERPRETATION_LAB, VIPS_INTERPRETATION_LABS, VIPS_INTERPRETATION_LABQ:
      // TIFF's Lab follows ICC profiles, with white paper in D50; libvips's own conversion assumes
      // D65.
      return try made(
        "colour profile", by: "icc_export", "output-profile=srgb,intent=relative,depth=8"
      ).withoutProfile()
    case VIPS_INTERPRETATION_XYZ: return try converted(to: VIPS_INTERPRETATION_sRGB)
    default: return self
    }
  }

  /// Converts to sRGB (3 bands) or grey (1 band), with or without alpha, 8 bits each.
  ///
  /// - Parameters:
  ///   - codePoints: The colour space that the container describes.
  ///   - keepsProfile: Whether the values stay those of the embedded profile.
  consuming func inSRGB(
    from codePoints: CodePoints?, keepsProfile: Bool = false
  ) throws(ImageError) -> Image {
    // Of grey, primaries change nothing.
    if let codePoints, bands >= 3 || codePoints.transfer != .standard, foreignProfile.isEmpty {
      return try shown(codePoints)
    }
    var image = try inWholeNumbers()
    let isGrey = image.isGrey
    if !keepsProfile, !image.foreignProfile.isEmpty {
      image = try image.applyingForeignProfile()
      // A grey image has three equal bands at this point.
      if isGrey && image.bands >= 3 { image = try image.greyOfEqualBands() }
    }
    if image.has16Bits {
      image = try image.in8Bits()
    } else if image.interpretation != VIPS_INTERPRETATION_sRGB
      && image.interpretation != VIPS_INTERPRETATION_B_W
    {
      image = try image.converted(
        to: isGrey ? VIPS_INTERPRETATION_B_W : VIPS_INTERPRETATION_sRGB)
    }
    if image.format != VIPS_FORMAT_UCHAR { image = try image.cast(to: VIPS_FORMAT_UCHAR) }
    // A TIFF may have any number of additional bands.
    let maximum = isGrey ? 2 : 4
    return image.bands > maximum ? try image.bands(0, count: maximum) : image
  }

  /// Whether the image has only lightness.
  var isGrey: Bool {
    interpretation == VIPS_INTERPRETATION_B_W || interpretation == VIPS_INTERPRETATION_GREY16
  }

  /// Returns the components of a colour in this image's bands, without alpha. A grey image shows
  /// only grey colours.
  func components(of color: Color) -> [Double] {
    bands < 3
      ? [Double(color.green)] : [Double(color.red), Double(color.green), Double(color.blue)]
  }

  /// Converts the image to sRGB if its bands cannot show `color`.
  consuming func able(toShow color: Color) throws(ImageError) -> Image {
    bands >= 3 || (color.red == color.green && color.green == color.blue)
      ? self : try converted(to: VIPS_INTERPRETATION_sRGB)
  }

  /// The embedded profile if it fits the image and is not sRGB's own; empty otherwise.
  var foreignProfile: [UInt8] {
    guard let profile = blob(VIPS_META_ICC_NAME),
      withVipsImage({ vips_icc_is_compatible_profile($0, profile, profile.count) }) != 0
    else { return [] }
    // ICC.1:2022, 7.2: the 128-byte header holds class and colour space at 12 and 16, device
    // manufacturer and model at 48 and 52. The colour space is checked because libvips accepts a
    // grey profile for three bands.
    let isOfImages = ["mntr", "scnr", "prtr", "spac"].contains {
      profile.dropFirst(12).starts(with: $0.utf8)
    }
    guard isOfImages, profile.dropFirst(16).starts(with: profileSpace.utf8) else { return [] }
    // The profile that nearly every sRGB image carries has "IEC " and "sRGB" here; applying it
    // would take time and change nothing.
    return profile.dropFirst(48).starts(with: "IEC sRGB".utf8) ? [] : profile
  }

  /// The colour space of the image as ICC headers name it.
  private var profileSpace: String {
    if isGrey { return "GRAY" }
    return interpretation == VIPS_INTERPRETATION_CMYK ? "CMYK" : "RGB "
  }

  /// Converts to sRGB with the embedded profile, or with libvips's built-in profile `fallback` if
  /// the embedded one does not fit.
  private func applyingProfile(isEmbedded: Bool = true, else fallback: String) throws(ImageError)
    -> Image
  {
    let intent = isEmbedded ? Self.intent(of: foreignProfile) : "relative"
    return try made(
      "colour profile", by: "icc_transform",
      "output-profile=srgb,embedded=\(isEmbedded),input-profile=\(fallback),intent=\(intent),"
        + "black-point-compensation=true,depth=8"
    ).withoutProfile()
  }

  /// Returns the intent that a profile supports (ICC.1:2022, table 25): the tables of relative
  /// colorimetry (`A2B1`), or curves and a matrix, serve the relative one.
  private static func intent(of profile: [UInt8]) -> String {
    func has(_ name: String) -> Bool { ProfileDescription.has(name, in: profile) }
    if has("A2B1") || has("rXYZ") || has("kTRC") { return "relative" }
    if has("A2B0") { return "perceptual" }
    return has("A2B2") ? "saturation" : "relative"
  }

  /// Converts to sRGB with the embedded profile. If the profile cannot be applied, the pixels stay
  /// unchanged, because an untrusted profile may lack any of its tables.
  private func applyingForeignProfile() throws(ImageError) -> Image {
    let hasWideAlpha = hasAlpha && has16Bits
    let colors = hasWideAlpha ? try bands(0, count: bands - 1) : try bands(0, count: bands)
    guard let image = try? colors.applyingProfile(else: "srgb") else {
      VipsLibrary.tidyUp()
      return try withoutProfile()
    }
    guard hasWideAlpha else { return image }
    // libvips would truncate the lower 8 bits of the alpha.
    let alpha = try bands(bands - 1, count: 1).in8Bits()
    return try image.made("alpha") { image, result in
      alpha.withVipsImage { pictor_vips_bandjoin2(image, $0, result) }
    }
  }

  /// Adds a profile built from a PNG's `gAMA` and `cHRM`, if these describe anything other than
  /// sRGB. Removes the profile of a PNG whose `cICP` takes precedence.
  consuming func withProfile(of colour: PNGColour) throws(ImageError) -> Image {
    if colour.codePoints != nil { return try withoutProfile() }
    guard colour.isForeign, let profile = MatrixProfile.bytes(for: colour, isGrey: isGrey) else {
      return self
    }
    let copy = try copied("metadata")
    copy.withVipsImage {
      vips_image_set_blob_copy($0, VIPS_META_ICC_NAME, profile, profile.count)
    }
    return copy
  }

  /// Removes the colour profile from the metadata.
  private func withoutProfile() throws(ImageError) -> Image {
    let copy = try copied("metadata")
    _ = copy.withVipsImage { vips_image_remove($0, VIPS_META_ICC_NAME) }
    return copy
  }

  /// Converts three equal bands to one by keeping the last, which alpha follows.
  private func greyOfEqualBands() throws(ImageError) -> Image {
    let grey = try bands(2, count: hasAlpha ? 2 : 1)
    return try grey.named("grey", VIPS_INTERPRETATION_B_W)
  }

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
    return try roundedToBytes(by: 255 / fullLight).named("depth", meaning)
  }

  /// Returns the values multiplied by `factor`, as integers from 0 to 255.
  func roundedToBytes(by factor: Double) throws(ImageError) -> Image {
    // libvips truncates the fraction, so adding 0.5 rounds.
    try scaled("depth", by: [factor], plus: [0.5], toBytes: true)
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
    return try scaled("depth", by: [65_535], plus: [0.5]).cast(to: VIPS_FORMAT_USHORT)
      .named("depth", meaning)
  }
}
