// WebPEncoder: encodes pixels with libwebp, with settings that libvips cannot pass on.

import CVips
import CWebP
import Model

/// How one lossy WebP is encoded (docs/decisions/044-webp-and-jxl-encoders.md).
struct WebPEncoder {
  /// 1–100, by libwebp's scale.
  let quality: Int
  /// libwebp's method, 0–6.
  let effort: Int

  /// How much more smooth areas are quantized than they show, 0–100; libwebp's own is 50.
  private static let noiseShaping: CInt = 70
  /// How much edges of blocks are smoothed, 0–100; libwebp's own is 60.
  private static let filterStrength: CInt = 100

  /// Whether this encoder is for an image: three bands of 8 bits, one frame, no metadata. libvips encodes all other images.
  func suits(_ image: borrowing Image) -> Bool {
    image.bands == 3 && image.format == VIPS_FORMAT_UCHAR && !image.isAnimation
      && !image.hasMetadata
  }

  /// Encodes an image in sRGB that this encoder is for; everything not yet computed is computed now.
  ///
  /// - Throws: The error of the image's own pipeline, `ImageError.outOfMemory` or `.internal`.
  func encode(_ image: borrowing Image) throws(ImageError) -> GLibBytes {
    try image.withPixels { pixels, size throws(ImageError) in
      var picture = WebPPicture()
      guard WebPPictureInit(&picture) != 0 else {
        throw .internal(detail: "encode: libwebp has another version than its header")
      }
      defer { WebPPictureFree(&picture) }
      try fill(&picture, with: pixels, size)
      return try bytes(of: &picture)
    }
  }

  private func fill(
    _ picture: inout WebPPicture, with pixels: UnsafePointer<UInt8>, _ size: PixelSize
  ) throws(ImageError) {
    picture.use_argb = 0
    picture.width = CInt(size.width)
    picture.height = CInt(size.height)
    guard WebPPictureAlloc(&picture) != 0, let y = picture.y, let u = picture.u, let v = picture.v
    else { throw failure(picture) }
    func samples(_ start: UnsafeMutablePointer<UInt8>, _ stride: CInt) -> ChromaSubsampling.Samples
    {
      ChromaSubsampling.Samples(start: start, stride: Int(stride))
    }
    ChromaSubsampling.limitedRange.convert(
      pixels, size,
      to: ChromaSubsampling.Planes(
        luma: samples(y, picture.y_stride), blue: samples(u, picture.uv_stride),
        red: samples(v, picture.uv_stride)))
  }

  private func bytes(of picture: inout WebPPicture) throws(ImageError) -> GLibBytes {
    var config = WebPConfig()
    guard WebPConfigInit(&config) != 0 else { throw failure(picture) }
    config.quality = Float(quality)
    config.method = CInt(effort)
    config.sns_strength = Self.noiseShaping
    config.filter_strength = Self.filterStrength
    var writer = WebPMemoryWriter()
    WebPMemoryWriterInit(&writer)
    defer { WebPMemoryWriterClear(&writer) }
    picture.writer = WebPMemoryWrite
    let isEncoded = withUnsafeMutablePointer(to: &writer) { writer in
      picture.custom_ptr = UnsafeMutableRawPointer(writer)
      return WebPEncode(&config, &picture) != 0
    }
    guard isEncoded else { throw failure(picture) }
    return try GLibBytes(
      copying: Array(UnsafeBufferPointer(start: writer.mem, count: writer.size)))
  }

  private func failure(_ picture: WebPPicture) -> ImageError {
    let text = "encode: libwebp: error \(picture.error_code.rawValue)"
    return switch picture.error_code {
    case VP8_ENC_ERROR_OUT_OF_MEMORY, VP8_ENC_ERROR_BITSTREAM_OUT_OF_MEMORY,
      VP8_ENC_ERROR_BAD_WRITE:
      .outOfMemory(detail: text)
    default: .internal(detail: text)
    }
  }
}
