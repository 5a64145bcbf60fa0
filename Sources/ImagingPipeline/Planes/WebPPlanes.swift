// WebPPlanes: decodes a WebP to its planes with libwebp.

import CWebP
import Model

/// The decoded image of a lossy WebP.
///
/// libwebp's own reduction averages areas, in plain C, and gives softer images than Lanczos3.
struct WebPPlanes: ~Copyable {
  let image: PlanarImage
  /// Owned; freed by `deinit`.
  private let config: WebPDecoderConfig

  /// Decodes the image.
  ///
  /// - Parameters:
  ///   - size: The size that the header gives.
  ///   - isSmoothed: Whether the edges of blocks are filtered.
  ///   - isThreaded: Whether a second thread filters and writes the rows that this one has parsed.
  /// - Returns: `nil` for what libvips has to decode: alpha, frames, lossless images; and for damage, which libvips reports.
  init?(
    _ source: UnsafeRawBufferPointer, size: PixelSize, isSmoothed: Bool, isThreaded: Bool = false
  ) {
    let bytes = source.assumingMemoryBound(to: UInt8.self)
    var config = WebPDecoderConfig()
    // 1: lossy; 2 would be lossless, which has no planes.
    guard WebPInitDecoderConfig(&config) != 0,
      WebPGetFeatures(bytes.baseAddress, bytes.count, &config.input) == VP8_STATUS_OK,
      config.input.format == 1, config.input.has_alpha == 0, config.input.has_animation == 0,
      Int(config.input.width) == size.width, Int(config.input.height) == size.height,
      let matrix = ColourMatrix(coefficients: 6, isFullRange: false, depth: 8)
    else { return nil }
    config.output.colorspace = MODE_YUV
    config.options.bypass_filtering = isSmoothed ? 0 : 1
    config.options.use_threads = isThreaded ? 1 : 0
    guard WebPDecode(bytes.baseAddress, bytes.count, &config) == VP8_STATUS_OK,
      let image = Self.planes(of: config.output.u.YUVA, size: size, matrix: matrix)
    else {
      WebPFreeDecBuffer(&config.output)
      return nil
    }
    self.image = image
    self.config = config
  }

  deinit {
    var output = config.output
    WebPFreeDecBuffer(&output)
  }

  private static func planes(
    of buffer: WebPYUVABuffer, size: PixelSize, matrix: ColourMatrix
  ) -> PlanarImage? {
    guard let y = buffer.y, let cb = buffer.u, let cr = buffer.v else { return nil }
    let half = PixelSize(width: (size.width + 1) / 2, height: (size.height + 1) / 2)
    func plane(_ start: UnsafeMutablePointer<UInt8>, _ stride: CInt, _ size: PixelSize) -> Plane {
      Plane(start: UnsafeRawPointer(start), stride: Int(stride), size: size, depth: 8)
    }
    return PlanarImage(
      luma: plane(y, buffer.y_stride, size), blue: plane(cb, buffer.u_stride, half),
      red: plane(cr, buffer.v_stride, half), matrix: matrix)
  }
}
