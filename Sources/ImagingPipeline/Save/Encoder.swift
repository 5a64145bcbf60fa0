// Encoder: encodes a result with the settings of its format.

import CVips
import Model

extension Output {
  /// How much of the error of a colour a palette passes on to the next pixels, from 0 to 1.
  /// Photographs at 300 pixels have 5 % fewer bytes than with 1, and SSIM 0.975 instead of 0.962.
  static let dither = 0.35

  /// libjxl's effort. One less takes two fifths of the time for a fifth to a half more bytes.
  private static let effortOfJXL: CInt = 5
  /// libjxl refuses what libvips asks for below, and libvips then encodes at libjxl's default.
  private static let lowestQualityOfJXL = 5

  /// Encodes an image in sRGB or grey; everything not yet computed is computed now.
  ///
  /// - Parameter quality: Replaces the output's own quality; ignored for PNG, GIF and TIFF.
  func encode(_ image: borrowing Image, quality: Int? = nil) throws(ImageError) -> GLibBytes {
    let quality = quality ?? self.quality ?? 0
    if let bytes = try encodeDirectly(image, quality: quality) { return bytes }
    let interlace = CInt(isInterlaced ? 1 : 0)
    // An encoder that keeps metadata creates an Exif block if the image has no Exif.
    let isBare = !image.hasMetadata
    let strip = CInt(isBare ? 1 : 0)
    var bytes = try image.withVipsImage { image throws(ImageError) in
      try GLibBytes("encode") { bytes, count in
        switch format {
        case .webp:
          pictor_vips_webpsave(image, bytes, count, CInt(quality), CInt(efforts.webp), strip)
        case .gif:
          pictor_vips_gifsave(
            image, bytes, count, CInt(efforts.gif), Self.dither, interlace, strip)
        case .avif:
          pictor_vips_avifsave(image, bytes, count, CInt(quality), CInt(efforts.avif), strip)
        case .jxl:
          pictor_vips_jxlsave(
            image, bytes, count, CInt(max(quality, Self.lowestQualityOfJXL)), Self.effortOfJXL,
            strip)
        // TIFF. Deflate takes 5.6 times as long for 9 % fewer bytes (a photograph of 1200×800).
        default:
          pictor_vips_tiffsave(
            image, bytes, count, VIPS_FOREIGN_TIFF_COMPRESSION_LZW,
            VIPS_FOREIGN_TIFF_PREDICTOR_HORIZONTAL, strip)
        }
      }
    }
    if format == .webp, isBare, let lean = bytes.withUnsafeBytes(WebPStripping.stripped) {
      bytes = try GLibBytes(copying: lean)
    }
    return bytes
  }

  /// Encodes an image with the encoder of its format; `nil` for what libvips encodes without one.
  private func encodeDirectly(
    _ image: borrowing Image, quality: Int
  ) throws(ImageError) -> GLibBytes? {
    switch format {
    case .jpeg:
      return try JPEGEncoder.encode(
        image,
        JPEGEncoder.Settings(
          quality: quality, isProgressive: isInterlaced,
          subsamples: quality < JPEGEncoder.Settings.fullChromaQuality))
    case .png:
      let encoder = PNGEncoder(
        effort: efforts.png, effortOfPalette: efforts.gif, isInterlaced: isInterlaced,
        reducesColours: reducesColours)
      return try encoder.encode(image)
    case .avif:
      let encoder = AVIFEncoder(quality: quality, threads: threads)
      return encoder.suits(image, effort: efforts.avif) ? try encoder.encode(image) : nil
    default: return nil
    }
  }
}

extension Image {
  /// Whether the image is one frame of 8 bits without metadata: what `AVIFEncoder` can encode.
  var isPlain: Bool { format == VIPS_FORMAT_UCHAR && !isAnimation && !hasMetadata }
}
