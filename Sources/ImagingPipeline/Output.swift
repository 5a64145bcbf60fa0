// Output: which format a result gets, and how it is encoded.

import CVips
import Model

/// The encoder of one result.
struct Output {
  /// Format of the bytes.
  let format: ImageFormat
  /// Quality, 1–100; of no meaning to PNG and GIF.
  let quality: Int
  /// Whether JPEG, PNG and GIF are made to draw coarsely first.
  let isInterlaced: Bool
  /// Whether transparency survives.
  let keepsAlpha: Bool

  /// Chooses the format: the one asked for, else GIF for an animation, PNG where pixels have an alpha, JPEG for the
  /// rest (and PNG where a side is too long for a JPEG).
  ///
  /// - Throws: `ImageError.invalidParameter` when the result does not fit into the format asked for.
  init(for transform: Transform, header: SourceHeader, frames: Int, geometry: Geometry)
    throws(ImageError)
  {
    let longestSide = max(geometry.canvas.width, geometry.canvas.height)
    let hasAlpha =
      header.hasAlpha || transform.effects.radius != nil
      || (geometry.isPadded && transform.background.alpha < 255)
    if let format = transform.format {
      guard let limit = Self.longestSide(of: format) else {
        throw .invalidParameter(
          name: "format", value: format.rawValue,
          allowed: ImageFormat.outputs.map(\.rawValue).joined(separator: ", "))
      }
      guard longestSide <= limit else {
        throw .invalidParameter(
          name: "format", value: format.rawValue,
          allowed: "a side has at most \(limit) pixels, the result would be \(geometry.canvas)")
      }
      self.format = format
    } else if frames > 1 {
      format = .gif
    } else if hasAlpha || longestSide > Self.longestSideOfJPEG {
      format = .png
    } else {
      format = .jpeg
    }
    keepsAlpha = format != .jpeg
    isInterlaced = transform.progressive
    quality = transform.quality ?? format.defaultQuality ?? 0
  }

  /// libjpeg's `JPEG_MAX_DIMENSION`.
  private static let longestSideOfJPEG = 65_500

  /// The most pixels a side may have; `nil` for what is no output.
  private static func longestSide(of format: ImageFormat) -> Int? {
    switch format {
    case .jpeg: longestSideOfJPEG
    case .png: 1_000_000  // libpng's default limit, which readers have too
    case .webp: 16_383  // RFC 9649, section 3.4
    case .gif: 65_535  // 16 bits in GIF89a's logical screen descriptor
    case .tiff, .heic, .avif, .svg, .jxl, .jp2, .bmp, .ico, .json: nil
    }
  }

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

  /// Encodes a picture in sRGB or grey; everything not yet computed is computed now.
  func encode(_ picture: borrowing Picture) throws(ImageError) -> GLibBytes {
    let (format, quality, interlace) = (format, CInt(quality), CInt(isInterlaced ? 1 : 0))
    var bytes = try picture.withVipsImage { image throws(ImageError) in
      try GLibBytes("encode") { bytes, count in
        switch format {
        // Optimal Huffman tables: at 300×200 0.6 ms more for 2.5 % fewer bytes, which are sent many times.
        case .jpeg: pictor_vips_jpegsave(image, bytes, count, quality, 1, interlace, 1)
        case .webp: pictor_vips_webpsave(image, bytes, count, quality, Self.webpEffort, 1)
        case .gif: pictor_vips_gifsave(image, bytes, count, Self.gifEffort, interlace, 1)
        default:
          pictor_vips_pngsave(
            image, bytes, count, Self.pngCompression, VIPS_FOREIGN_PNG_FILTER_ALL, interlace, 1)
        }
      }
    }
    if format == .webp { bytes.shorten(WebPContainer.dropMetadata) }
    return bytes
  }
}
