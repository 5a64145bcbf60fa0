// Colour: from whatever a source's numbers mean to sRGB or grey, 8 bits a band.

import CVips
import Model

/// ICC profiles are applied with the relative colorimetric intent and black point compensation: colours that sRGB has
/// stay what they are, and shadows keep their detail. The others are clipped.
extension Picture {
  /// What has to happen before the resize: CMYK and Lab are no light that could be averaged, and CMYK's black would
  /// pass for an alpha.
  consuming func readyForResize() throws(ImageError) -> Picture {
    switch interpretation {
    case VIPS_INTERPRETATION_CMYK: try applyingProfile(else: "cmyk")
    case VIPS_INTERPRETATION_LAB, VIPS_INTERPRETATION_LABS, VIPS_INTERPRETATION_XYZ:
      try converted(to: VIPS_INTERPRETATION_sRGB)
    default: self
    }
  }

  /// sRGB (3 bands) or grey (1), with or without an alpha, 8 bits each.
  consuming func inSRGB() throws(ImageError) -> Picture {
    var picture = self
    let isGrey = picture.isGrey
    if !picture.foreignProfile.isEmpty {
      picture = try picture.applyingProfile(else: "srgb")
      // What was grey has three equal bands now.
      if isGrey && picture.bands >= 3 { picture = try picture.greyOfEqualBands() }
    }
    if picture.interpretation != VIPS_INTERPRETATION_sRGB
      && picture.interpretation != VIPS_INTERPRETATION_B_W
    {
      picture = try picture.converted(
        to: isGrey ? VIPS_INTERPRETATION_B_W : VIPS_INTERPRETATION_sRGB)
    }
    if picture.format != VIPS_FORMAT_UCHAR { picture = try picture.cast(to: VIPS_FORMAT_UCHAR) }
    // A TIFF may have any number of bands more.
    let most = isGrey ? 2 : 4
    return picture.bands > most ? try picture.bands(0, count: most) : picture
  }

  /// Whether there is only lightness.
  var isGrey: Bool {
    interpretation == VIPS_INTERPRETATION_B_W || interpretation == VIPS_INTERPRETATION_GREY16
  }

  /// A colour in this picture's bands, without an alpha. A grey picture can show only grey ones.
  func components(of color: Color) -> [Double] {
    bands < 3
      ? [Double(color.green)] : [Double(color.red), Double(color.green), Double(color.blue)]
  }

  /// It, in bands that can show `color`.
  consuming func able(toShow color: Color) throws(ImageError) -> Picture {
    bands >= 3 || (color.red == color.green && color.green == color.blue)
      ? self : try converted(to: VIPS_INTERPRETATION_sRGB)
  }

  /// The embedded profile, where there is one that fits the picture and is another than sRGB's own; empty otherwise.
  var foreignProfile: [UInt8] {
    withVipsImage { image in
      guard vips_image_get_typeof(image, VIPS_META_ICC_NAME) != 0 else { return [] }
      var data: UnsafeRawPointer?
      var count = 0
      guard vips_image_get_blob(image, VIPS_META_ICC_NAME, &data, &count) == 0, let data,
        vips_icc_is_compatible_profile(image, data, count) != 0
      else { return [] }
      // ICC.1:2022, 7.2: the header's 128 bytes hold device manufacturer and model at 48 and 52. The profile that
      // nearly every sRGB picture carries is "IEC ", "sRGB"; applying it would cost 5 ms and change nothing.
      let header = UnsafeRawBufferPointer(start: data, count: count)
      return header.dropFirst(48).starts(with: "IEC sRGB".utf8) ? [] : Array(header)
    }
  }

  /// sRGB by the embedded profile; where there is none that fits, by the one libvips brings under this name.
  private func applyingProfile(else fallback: String) throws(ImageError) -> Picture {
    try made("colour profile") {
      pictor_vips_icc_transform($0, $1, "srgb", fallback, VIPS_INTENT_RELATIVE)
    }
  }

  /// Of three equal bands the last one, which an alpha follows.
  private func greyOfEqualBands() throws(ImageError) -> Picture {
    let grey = try bands(2, count: hasAlpha ? 2 : 1)
    return try grey.made("grey") { pictor_vips_copy_as($0, $1, VIPS_INTERPRETATION_B_W) }
  }
}
