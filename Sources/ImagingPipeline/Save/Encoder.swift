// Encoder: encodes a result with the settings of its format.

import CVips
import Model

extension Output {
  /// How much of the error of a colour a palette passes on to the next pixels, from 0 to 1. See
  /// docs/decisions/026-encoder-defaults.md.
  static let dither = 0.35

  /// Encodes an image in sRGB or grey; everything not yet computed is computed now.
  ///
  /// - Parameter quality: Replaces the output's own quality; ignored for PNG, GIF and TIFF.
  func encode(_ image: borrowing Image, quality: Int? = nil) throws(ImageError) -> GLibBytes {
    if format == .jpeg {
      let quality = quality ?? self.quality ?? 0
      return try JPEGEncoder.encode(
        image,
        JPEGEncoder.Settings(
          quality: quality, isProgressive: isInterlaced,
          subsamples: quality < JPEGEncoder.Settings.fullChromaQuality))
    }
    if format == .png {
      return try PNGEncoder(
        effort: efforts.png, effortOfPalette: efforts.gif, isInterlaced: isInterlaced,
        reducesColours: reducesColours
      ).encode(image)
    }
    if let bytes = try encodeDirectly(image, quality: quality ?? self.quality ?? 0) { return bytes }
    let interlace = CInt(isInterlaced ? 1 : 0)
    let quality = CInt(quality ?? self.quality ?? 0)
    // An encoder that keeps metadata creates an Exif block if the image has no Exif.
    let isBare = !image.hasMetadata
    let strip = CInt(isBare ? 1 : 0)
    var bytes = try image.withVipsImage { image throws(ImageError) in
      try GLibBytes("encode") { bytes, count in
        switch format {
        case .webp: pictor_vips_webpsave(image, bytes, count, quality, CInt(efforts.webp), strip)
        case .gif:
          pictor_vips_gifsave(
            image, bytes, count, CInt(efforts.gif), Self.dither, interlace, strip)
        case .avif: pictor_vips_avifsave(image, bytes, count, quality, CInt(efforts.avif), strip)
        case .jxl: pictor_vips_jxlsave(image, bytes, count, quality, CInt(efforts.jxl), strip)
        // TIFF. Deflate would take several times as long for few bytes (docs/decisions/006-measurements-behind-constants.md).
        default:
          pictor_vips_tiffsave(
            image, bytes, count, VIPS_FOREIGN_TIFF_COMPRESSION_LZW,
            VIPS_FOREIGN_TIFF_PREDICTOR_HORIZONTAL, strip)
        }
      }
    }
    if format == .webp && isBare { bytes.shorten(WebPContainer.dropMetadata) }
    return bytes
  }

  /// Encodes an image with the format's own library instead of libvips; `nil` if libvips has to.
  private func encodeDirectly(
    _ image: borrowing Image, quality: Int
  ) throws(ImageError) -> GLibBytes? {
    switch format {
    case .webp:
      let encoder = WebPEncoder(quality: quality, effort: efforts.webp)
      return encoder.suits(image) ? try encoder.encode(image) : nil
    case .avif:
      let encoder = AVIFEncoder(quality: quality, threads: threads)
      return encoder.suits(image, effort: efforts.avif) ? try encoder.encode(image) : nil
    case .jxl:
      let encoder = JXLEncoder(quality: quality, effort: efforts.jxl, threads: threads)
      return encoder.suits(image) ? try encoder.encode(image) : nil
    default: return nil
    }
  }
}
