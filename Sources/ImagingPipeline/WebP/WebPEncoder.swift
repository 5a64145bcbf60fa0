// WebPEncoder: encodes pixels with libwebp, with settings that libvips cannot pass on.

import CWebP
import Model

/// How one lossy WebP is encoded.
struct WebPEncoder {
  /// 1–100, by libwebp's scale.
  let quality: Int
  /// libwebp's method, 0–6.
  let effort: Int

  /// How much more coarsely busy areas are quantized than smooth ones, 0–100; libwebp's default is 50.
  var noiseShaping: CInt = 70
  /// How much edges of blocks are smoothed, 0–100; libwebp's default is 60.
  var filterStrength: CInt = 100

  /// Whether this encoder can encode an image: three bands of 8 bits, one frame, no metadata. libvips encodes all others.
  func suits(_ image: borrowing Image) -> Bool { image.bands == 3 && image.isPlain }

  /// Encodes an image in sRGB for which `suits` is true; everything not yet computed is computed now.
  ///
  /// - Throws: The error of the image's own pipeline, `ImageError.outOfMemory` or `.internal`.
  func encode(_ image: borrowing Image) throws(ImageError) -> GLibBytes {
    try image.withPixels { pixels, size throws(ImageError) in
      var picture = WebPPicture()
      guard WebPPictureInit(&picture) != 0 else {
        throw Self.otherVersion
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
    ChromaSubsampling.limitedRange.convert(
      pixels, size,
      to: ChromaSubsampling.Planes(
        luma: .init(y, stride: picture.y_stride), cb: .init(u, stride: picture.uv_stride),
        cr: .init(v, stride: picture.uv_stride)))
  }

  private func bytes(of picture: inout WebPPicture) throws(ImageError) -> GLibBytes {
    var config = WebPConfig()
    guard WebPConfigInit(&config) != 0 else { throw Self.otherVersion }
    config.quality = Float(quality)
    config.method = CInt(effort)
    config.sns_strength = noiseShaping
    config.filter_strength = filterStrength
    var writer = WebPMemoryWriter()
    WebPMemoryWriterInit(&writer)
    defer { WebPMemoryWriterClear(&writer) }
    picture.writer = WebPMemoryWrite
    let isEncoded = withUnsafeMutablePointer(to: &writer) { writer in
      picture.custom_ptr = UnsafeMutableRawPointer(writer)
      return WebPEncode(&config, &picture) != 0
    }
    guard isEncoded, let file = writer.mem else { throw failure(picture) }
    writer.mem = nil
    return GLibBytes(owning: file, count: writer.size)
  }

  private static let otherVersion =
    ImageError.internal(detail: "encode: libwebp has another version than its header")

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
