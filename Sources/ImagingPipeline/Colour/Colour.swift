// Colour: from whatever a source's numbers mean to sRGB or grey, 8 bits a band.

import CVips
import Model

/// ICC profiles are applied with the relative colorimetric intent and black point compensation: colours that sRGB has
/// stay what they are, and shadows keep their detail. The others are clipped.
extension Image {
  /// What has to happen before the resize: CMYK and Lab are no light that could be averaged, and CMYK's black would
  /// pass for an alpha.
  consuming func readyForResize() throws(ImageError) -> Image {
    switch interpretation {
    case VIPS_INTERPRETATION_CMYK:
      if !foreignProfile.isEmpty, let image = try? applyingProfile(else: "cmyk") {
        return image
      }
      VipsLibrary.tidyUp()
      return try applyingProfile(isEmbedded: false, else: "cmyk")
    case VIPS_INTERPRETATION_LAB, VIPS_INTERPRETATION_LABS, VIPS_INTERPRETATION_LABQ:
      // TIFF's Lab is that of ICC profiles, of white paper in D50; libvips's own conversion takes it for D65.
      return try made("colour profile") {
        pictor_vips_icc_export($0, $1, "srgb", VIPS_INTENT_RELATIVE)
      }.withoutProfile()
    case VIPS_INTERPRETATION_XYZ: return try converted(to: VIPS_INTERPRETATION_sRGB)
    default: return self
    }
  }

  /// sRGB (3 bands) or grey (1), with or without an alpha, 8 bits each.
  ///
  /// - Parameter codePoints: What its numbers mean, where its container says so.
  consuming func inSRGB(from codePoints: CodePoints?) throws(ImageError) -> Image {
    if let codePoints, bands >= 3, foreignProfile.isEmpty { return try shown(codePoints) }
    var image = try inWholeNumbers()
    let isGrey = image.isGrey
    if !image.foreignProfile.isEmpty {
      image = try image.applyingForeignProfile()
      // What was grey has three equal bands now.
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
    // A TIFF may have any number of bands more.
    let most = isGrey ? 2 : 4
    return image.bands > most ? try image.bands(0, count: most) : image
  }

  /// Whether there is only lightness.
  var isGrey: Bool {
    interpretation == VIPS_INTERPRETATION_B_W || interpretation == VIPS_INTERPRETATION_GREY16
  }

  /// A colour in this image's bands, without an alpha. A grey image can show only grey ones.
  func components(of color: Color) -> [Double] {
    bands < 3
      ? [Double(color.green)] : [Double(color.red), Double(color.green), Double(color.blue)]
  }

  /// It, in bands that can show `color`.
  consuming func able(toShow color: Color) throws(ImageError) -> Image {
    bands >= 3 || (color.red == color.green && color.green == color.blue)
      ? self : try converted(to: VIPS_INTERPRETATION_sRGB)
  }

  /// The embedded profile, where there is one that fits the image and is another than sRGB's own; empty otherwise.
  var foreignProfile: [UInt8] {
    withVipsImage { image in
      guard vips_image_get_typeof(image, VIPS_META_ICC_NAME) != 0 else { return [] }
      var data: UnsafeRawPointer?
      var count = 0
      guard vips_image_get_blob(image, VIPS_META_ICC_NAME, &data, &count) == 0, let data,
        vips_icc_is_compatible_profile(image, data, count) != 0
      else { return [] }
      // ICC.1:2022, 7.2: the header's 128 bytes hold class and colour space at 12 and 16, device manufacturer and model
      // at 48 and 52. libvips lets a grey profile pass for an image of three bands.
      let header = UnsafeRawBufferPointer(start: data, count: count)
      let isOfImages = ["mntr", "scnr", "prtr", "spac"].contains {
        header.dropFirst(12).starts(with: $0.utf8)
      }
      guard isOfImages, header.dropFirst(16).starts(with: profileSpace.utf8) else { return [] }
      // The profile that nearly every sRGB image carries is "IEC ", "sRGB"; applying it would cost 5 ms and change
      // nothing.
      return header.dropFirst(48).starts(with: "IEC sRGB".utf8) ? [] : Array(header)
    }
  }

  /// What ICC headers call the colours it has.
  private var profileSpace: String {
    if isGrey { return "GRAY" }
    return interpretation == VIPS_INTERPRETATION_CMYK ? "CMYK" : "RGB "
  }

  /// sRGB by the embedded profile; where there is none that fits, by the one libvips brings under this name.
  private func applyingProfile(isEmbedded: Bool = true, else fallback: String) throws(ImageError)
    -> Image
  {
    try made("colour profile") {
      pictor_vips_icc_transform(
        $0, $1, "srgb", isEmbedded ? 1 : 0, fallback, VIPS_INTENT_RELATIVE)
    }.withoutProfile()
  }

  /// sRGB by the embedded profile, or untouched where that opens but cannot be used: a stranger's profile may lack any
  /// of its tables.
  private func applyingForeignProfile() throws(ImageError) -> Image {
    let hasWideAlpha = hasAlpha && has16Bits
    let colors = hasWideAlpha ? try bands(0, count: bands - 1) : try bands(0, count: bands)
    guard let image = try? colors.applyingProfile(else: "srgb") else {
      VipsLibrary.tidyUp()
      return try withoutProfile()
    }
    guard hasWideAlpha else { return image }
    // libvips would cut the alpha's lower 8 bits off.
    let alpha = try bands(bands - 1, count: 1).in8Bits()
    return try image.made("alpha") { image, result in
      alpha.withVipsImage { pictor_vips_bandjoin2(image, $0, result) }
    }
  }

  /// It, with the profile that a PNG's `gAMA` and `cHRM` amount to, where these say anything else than sRGB.
  consuming func withProfile(of colour: PNGColour) throws(ImageError) -> Image {
    guard colour.isForeign, let profile = MatrixProfile.bytes(for: colour, isGrey: isGrey) else {
      return self
    }
    let copy = try made("metadata") { pictor_vips_copy($0, $1) }
    copy.withVipsImage {
      vips_image_set_blob_copy($0, VIPS_META_ICC_NAME, profile, profile.count)
    }
    return copy
  }

  /// It, its metadata without the colour profile.
  private func withoutProfile() throws(ImageError) -> Image {
    let copy = try made("metadata") { pictor_vips_copy($0, $1) }
    _ = copy.withVipsImage { vips_image_remove($0, VIPS_META_ICC_NAME) }
    return copy
  }

  /// Of three equal bands the last one, which an alpha follows.
  private func greyOfEqualBands() throws(ImageError) -> Image {
    let grey = try bands(2, count: hasAlpha ? 2 : 1)
    return try grey.made("grey") { pictor_vips_copy_as($0, $1, VIPS_INTERPRETATION_B_W) }
  }
}
