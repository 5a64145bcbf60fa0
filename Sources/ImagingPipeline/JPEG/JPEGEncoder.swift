// JPEGEncoder: encodes pixels with libjpeg.

import CJPEG
import CVips
import Core

/// One JPEG that is being encoded, with the best Huffman codes.
struct JPEGEncoder: ~Copyable {
  private let jpeg: UnsafeMutablePointer<pictor_jpeg>

  /// How a JPEG is encoded.
  struct Settings {
    /// 1–100, by libjpeg's scale (jpeg_quality_scaling).
    let quality: Int
    let isProgressive: Bool
    /// Whether chroma has half the resolution in both directions (4:2:0).
    let subsamples: Bool

    /// From this quality on, chroma has full resolution, as with libvips's jpegsave
    /// (`subsample_mode`).
    static let fullChromaQuality = 90
  }

  /// Encodes an image in sRGB or grey, with its metadata; everything not yet computed is computed
  /// now.
  ///
  /// - Throws: The error of the image's own pipeline, `ImageError.outOfMemory` or `.internal`.
  static func encode(_ image: borrowing Image, _ settings: Settings) throws(ImageError) -> GLibBytes
  {
    // A suited image is encoded as it is: a copy of one in memory would not be in memory.
    if image.hasAlpha { return try encode(try image.bands(0, count: image.bands - 1), settings) }
    if image.format != VIPS_FORMAT_UCHAR {
      return try encode(try image.cast(to: VIPS_FORMAT_UCHAR), settings)
    }
    let encoder = try JPEGEncoder()
    try encoder.start(image.size, bands: image.bands, settings)
    if image.hasMetadata { try encoder.writeMetadata(of: image) }
    if let profile = image.blob(VIPS_META_ICC_NAME) { try encoder.write(profile) }
    try encoder.writePixels(of: image)
    return try encoder.finish()
  }

  private init() throws(ImageError) {
    guard let jpeg = pictor_jpeg_new() else { throw .outOfMemory(detail: "encode: libjpeg") }
    self.jpeg = jpeg
  }

  deinit { pictor_jpeg_close(jpeg) }

  private func start(_ size: PixelSize, bands: Int, _ settings: Settings) throws(ImageError) {
    try check(
      pictor_jpeg_start(
        jpeg, CUnsignedInt(size.width), CUnsignedInt(size.height), CInt(bands),
        CInt(settings.quality), settings.isProgressive ? 1 : 0, settings.subsamples ? 1 : 0,
        Self.luma, Self.chroma))
  }

  /// Copies the segments that libvips writes for the image's metadata. It writes them for black
  /// pixels of the same size, since Exif states the size, and since the image may be one that can
  /// be read only once.
  private func writeMetadata(of image: borrowing Image) throws(ImageError) {
    let black = try Image(black: image.size)
    black.setResolution(image.resolution)
    black.takeMetadata(of: image, for: .jpeg)
    // With the pixels at the lowest quality.
    let file = try black.saved(by: "jpegsave", "Q=1", keepsAll: true)
    var result: CInt = 0
    file.withUnsafeBytes { file in
      var markers = JPEGMarkers(file)
      while result == 0, let (marker, content) = markers.nextSegment(), marker != 0xda {
        guard (0xe0...0xef).contains(marker) || marker == 0xfe else { continue }
        result = pictor_jpeg_write_segment(
          jpeg, CInt(marker), content.baseAddress, CUnsignedInt(content.count))
      }
    }
    try check(result)
  }

  /// Writes a profile in as many segments as it takes (ICC.1:2022, annex B.4), at most 255.
  private func write(_ profile: [UInt8]) throws(ImageError) {
    let most = 65_519
    let starts = Array(stride(from: 0, to: profile.count, by: most))
    for (index, start) in starts.enumerated() {
      let segment =
        Array("ICC_PROFILE\0".utf8) + [UInt8(index + 1), UInt8(starts.count)]
        + profile[start...].prefix(most)
      try check(pictor_jpeg_write_segment(jpeg, 0xe2, segment, CUnsignedInt(segment.count)))
    }
  }

  /// Encodes pixels that are in memory, or strips of pixels as libvips computes them.
  private func writePixels(of image: borrowing Image) throws(ImageError) {
    if let pixels = image.pixels {
      let stride = image.size.width * image.bands
      return try check(
        pictor_jpeg_write_rows(jpeg, pixels, stride, CUnsignedInt(image.size.height)))
    }
    // libvips computes strips on its threads, and calls back with one after the other.
    let result = image.withVipsImage {
      vips_sink_disc(
        $0,
        { region, area, jpeg in
          guard let region, let area, let jpeg else { return -1 }
          return pictor_jpeg_write_rows(
            jpeg.assumingMemoryBound(to: pictor_jpeg.self),
            pictor_vips_region_address(region, area.pointee.left, area.pointee.top),
            Int(region.pointee.bpl), CUnsignedInt(area.pointee.height))
        }, jpeg)
    }
    // libvips does not report an error of the last strip.
    try check(jpeg.pointee.has_failed)
    guard result == 0 else { throw VipsLibrary.failure(in: "encode") }
  }

  private consuming func finish() throws(ImageError) -> GLibBytes {
    try check(pictor_jpeg_finish(jpeg))
    guard let file = jpeg.pointee.bytes else { throw .internal(detail: "encode: no bytes") }
    jpeg.pointee.bytes = nil
    return GLibBytes(owning: file, count: jpeg.pointee.count)
  }

  private func check(_ result: CInt) throws(ImageError) {
    guard result != 0 else { return }
    let text = withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(JMSG_LENGTH_MAX)) {
      pictor_jpeg_describe_error(jpeg, $0.baseAddress)
      return $0.baseAddress.map { String(cString: $0) } ?? ""
    }
    let detail = "encode: \(text)"
    throw Blame.isOfMemory(text) ? .outOfMemory(detail: detail) : .internal(detail: detail)
  }

  // MARK: Tables

  // The quantization tables at quality 50, row by row; libjpeg scales them to other qualities.
  //
  // Steps grow with the distance from the lowest frequency. libjpeg has the example tables of
  // ISO/IEC 10918-1, annex K. At equal SSIM photographs take 7 to 8 % fewer bytes with these.
  static let luma = table { 14 + $0 }
  static let chroma = table { 20 + 8 * $0.squareRoot() }

  /// Computes a table from the square of the distance.
  private static func table(_ step: (Double) -> Double) -> [CUnsignedInt] {
    (0..<64).map { place in
      let (down, across) = (Double(place / 8), Double(place % 8))
      return CUnsignedInt(step(down * down + across * across).rounded())
    }
  }
}
