// Encoder: what each format's encoder is told.

import CVips
import Model

extension Output {
  /// zlib's level, 1–9. Measured with all row filters tried, 300×300 RGBA: a photo in 14.4, 21.1, 47.6 and 62.8 ms and
  /// 201, 197, 195 and 194 kB at levels 3, 4, 6 and 9; a drawing in 2.8, 3.5, 4.0 and 16.1 ms and 11.1,
  /// 8.9, 9.0 and 8.5 kB. A fixed filter saves 10 to 50 % of the time and makes up to a third more bytes.
  private static let pngCompression: CInt = 4

  /// libwebp's effort, 0–6. Measured, a photo of 300×200: 4.7, 10.6 and 25.7 ms and 12.6, 12.3 and 11.5 kB at 2, 4 and 6.
  private static let webpEffort: CInt = 2
  /// libimagequant's effort, 1–10. Measured on 24 frames of 300×225 from a film, and 12 of 120×120 that are drawn: at 4 and at 7,
  /// libvips's default, 16.6 and 36.1 ms a frame, 9.9 and 17.9; 2 and 1 % more bytes; as the eye sees it, blurred by a
  /// pixel, 2.0 and 0.2 dB closer. At 3 it falls behind, at 12.5 ms.
  private static let gifEffort: CInt = 4
  /// 9 less libaom's speed, 0–9. Measured at 0, 1, 3 and 4, a photo of 300×200: 7, 21, 51 and 187 ms of processor, 12.7, 11.9,
  /// 11.9 and 12.0 kB, 34.1, 34.6, 34.8 and 35.1 dB; of 1200×800 up to 3: 61, 188 and 561 ms, 140, 138 and 141 kB, 36.0, 36.2
  /// and 36.8 dB. 1 is imgproxy's choice as well, 4 sharp's. Colour is at half of the resolution below quality 90.
  private static let avifEffort: CInt = 1
  /// libjxl's effort, 3–9. Measured at 4, 5 and 7, a photo of 300×200: 6, 11 and 15 ms, 11.4, 10.4 and 10.5 kB, 33.0, 32.6 and
  /// 32.5 dB; of 1200×800: 33, 125 and 202 ms, 127, 111 and 113 kB, 34.8, 34.1 and 34.2 dB.
  private static let jxlEffort: CInt = 4

  /// Encodes a picture in sRGB or grey; everything not yet computed is computed now.
  ///
  /// - Parameter quality: Instead of the output's own; of no meaning to PNG, GIF and TIFF.
  func encode(_ picture: borrowing Picture, quality: Int? = nil) throws(ImageError) -> GLibBytes {
    let interlace = CInt(isInterlaced ? 1 : 0)
    let quality = CInt(quality ?? self.quality ?? 0)
    // Told to keep metadata, encoders make an Exif of their own where there is none.
    let isBare = !picture.hasMetadata
    let strip = CInt(isBare ? 1 : 0)
    var bytes = try picture.withVipsImage { image throws(ImageError) in
      try GLibBytes("encode") { bytes, count in
        switch format {
        // Optimal Huffman tables: at 300×200 0.6 ms more for 2.5 % fewer bytes, which are sent many times.
        case .jpeg: pictor_vips_jpegsave(image, bytes, count, quality, 1, interlace, strip)
        case .webp: pictor_vips_webpsave(image, bytes, count, quality, Self.webpEffort, strip)
        case .gif: pictor_vips_gifsave(image, bytes, count, Self.gifEffort, interlace, strip)
        case .avif: pictor_vips_avifsave(image, bytes, count, quality, Self.avifEffort, strip)
        case .jxl: pictor_vips_jxlsave(image, bytes, count, quality, Self.jxlEffort, strip)
        // Measured on a photo of 1200×800: deflate makes 9 % fewer bytes in 5.6 times the time.
        case .tiff:
          pictor_vips_tiffsave(
            image, bytes, count, VIPS_FOREIGN_TIFF_COMPRESSION_LZW,
            VIPS_FOREIGN_TIFF_PREDICTOR_HORIZONTAL, strip)
        default:
          pictor_vips_pngsave(
            image, bytes, count, Self.pngCompression, VIPS_FOREIGN_PNG_FILTER_ALL, interlace, strip)
        }
      }
    }
    if format == .webp && isBare { bytes.shorten(WebPContainer.dropMetadata) }
    return bytes
  }
}
