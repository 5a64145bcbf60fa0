// Resize: resizes an image to the exact size of the geometry, and reads its rows.

import CVips
import Core

extension Image {
  /// Returns a part of the image, resized to exactly `target`.
  ///
  /// When reducing, a window with fractional edges is shown exactly, to a hundredth of a pixel. In
  /// all other cases the window is rounded to whole pixels.
  ///
  /// - Parameter threads: The most threads that reduce an image in memory.
  consuming func resized(
    to target: PixelSize, showing window: Window, threads: Int = 1
  ) throws(ImageError) -> Image {
    let covered = window.covered(of: size)
    let isExact = Window(covered.size).isClose(to: window.within(covered))
    let canBeExact =
      isReducible && target.pixels <= Self.maximumReducedPixels
      && Double(target.width) <= window.width && Double(target.height) <= window.height
    guard !isExact && canBeExact else {
      let area = isExact ? covered : window.rounded(of: size)
      if area.size == size { return try resized(to: target, threads: threads) }
      return try cut(x: area.x, y: area.y, area.size).resized(to: target)
    }
    // A whole image in memory stays there.
    let part =
      covered.size == size ? self : try cut(x: covered.x, y: covered.y, covered.size)
    return try part.reduced(to: target, showing: window.within(covered), threads: threads)
  }

  /// Returns the image resized to exactly `target`, with Lanczos3.
  ///
  /// Colours are premultiplied by alpha during the resize, so that transparent pixels do not bleed
  /// into edges.
  consuming func resized(to target: PixelSize, threads: Int = 1) throws(ImageError) -> Image {
    let size = self.size
    if size == target { return self }
    if isReducible && target.width <= size.width && target.height <= size.height
      && target.pixels <= Self.maximumReducedPixels
    {
      return try reduced(to: target, showing: Window(size), threads: threads)
    }
    guard hasAlpha else { return try resample(from: size, to: target) }
    let format = self.format
    let full = fullAlpha
    var image = try premultiplied()
    // Casts wider formats back, because integers resample faster than floats. 8-bit colours stay
    // floats, because they would lose precision at low alpha.
    if format != VIPS_FORMAT_UCHAR { image = try image.cast(to: format) }
    image = try image.resample(from: size, to: target)
    image = try image.unpremultiplied(full)
    return format == VIPS_FORMAT_UCHAR
      ? try image.roundedToBytes(by: 1) : try image.cast(to: format)
  }

  /// The maximum pixels of a result in memory. libvips resizes larger results in strips, because
  /// often only a part of them is kept.
  static let maximumReducedPixels = 16_000_000

  /// Whether `Resampler` supports the format of this image. Its results have 8 bits. So deep images
  /// are left to libvips whose colours are converted after the resize: those with a profile, and
  /// HEIF's, which may have code points.
  private var isReducible: Bool {
    guard bands <= (isGrey ? 2 : 4) else { return false }
    switch format {
    case VIPS_FORMAT_UCHAR:
      return [VIPS_INTERPRETATION_sRGB, VIPS_INTERPRETATION_B_W].contains(interpretation)
    case VIPS_FORMAT_USHORT: return has16Bits && fullLight == 65_535 && foreignProfile.isEmpty
    default: return false
    }
  }

  /// Returns a reduced part of the image with 8 bits per band, in memory; of the metadata only the
  /// colour profile remains.
  private consuming func reduced(
    to target: PixelSize, showing window: Window, threads: Int
  ) throws(ImageError) -> Image {
    let result = try Image(blank: target, bands: bands, profile: foreignProfile)
    // libvips computes on one thread only.
    let parts = pixels == nil ? 1 : Parallel.count(target.height, atLeast: Self.leastRows, threads)
    let source = self
    try Parallel.run(parts) { part throws(ImageError) in
      let rows = Parallel.part(part, of: parts, in: 0..<target.height)
      try Resampler(of: source, to: target, showing: window).run(rows) {
        y, bytes throws(ImageError) in
        try result.write(bytes, row: y)
      }
    }
    return result
  }

  /// The rows of a result that are worth a thread.
  static let leastRows = 32

  /// Cuts or repeats the last row or column of a vector rendered within one pixel of the target.
  /// Sizes differ because libvips scales both sides by one factor; resampling would blur the image.
  consuming func trimmed(to target: PixelSize) throws(ImageError) -> Image {
    let size = self.size
    guard size != target, abs(size.width - target.width) <= 1, abs(size.height - target.height) <= 1
    else { return self }
    return try made("trim", x: 0, y: 0, on: target, "copy")
  }

  /// The alpha value of an opaque pixel.
  var fullAlpha: Double {
    switch interpretation {
    case VIPS_INTERPRETATION_RGB16, VIPS_INTERPRETATION_GREY16: 65_535
    case VIPS_INTERPRETATION_scRGB: 1
    default: 255
    }
  }

  /// Resizes with libvips: reduces with Lanczos3 and enlarges with bicubic interpolation. Colours
  /// must be premultiplied by alpha.
  func resample(from size: PixelSize, to target: PixelSize) throws(ImageError) -> Image {
    let less = PixelSize(
      width: min(size.width, target.width), height: min(size.height, target.height))
    // Both factors are given, because with one factor libvips rounds the other side itself.
    var image = try made(
      "resize", by: "resize",
      "scale=\(Double(less.width) / Double(size.width)),"
        + "vscale=\(Double(less.height) / Double(size.height)),kernel=lanczos3")
    if less != target {
      // vips_resize of 8.14.1 shifts an enlarged image by half a result pixel to the right and
      // down.
      image = try image.made("resize") {
        pictor_vips_enlarge($0, $1, CInt(target.width), CInt(target.height), "bicubic")
      }
    }
    guard image.size == target else {
      throw .internal(detail: "resized \(size) to \(image.size) instead of \(target)")
    }
    return image
  }
}

/// Reads an image row by row, forwards only.
///
/// libvips's own sinks compute on a thread pool and hand each strip over. For small images, which
/// are the majority, those threads cost more than the pixels.
struct PixelRows: ~Copyable {
  /// Owned; freed by `deinit`.
  private let image: UnsafeMutablePointer<VipsImage>
  /// The pixels of an image in memory.
  private let pixels: UnsafeMutablePointer<UInt8>?
  /// Computes the pixels of any other image.
  private let region: UnsafeMutablePointer<VipsRegion>?
  private let rowBytes: Int
  private let size: PixelSize
  /// The number of rows computed at a time.
  private let strip: Int

  /// The approximate bytes computed at a time: less than a core's own cache, but many rows of a
  /// narrow image.
  private static let stripBytes = 65_536

  /// Starts at the top row.
  ///
  /// - Parameter image: The image; this value keeps a reference to it.
  init(of image: borrowing Image) throws(ImageError) {
    size = image.size
    rowBytes = image.size.width * image.pixelBytes
    pixels = image.pixels
    strip = max(8, min(64, Self.stripBytes / rowBytes))
    self.image = image.withVipsImage { $0 }
    pictor_g_object_ref(self.image)
    region = pixels == nil ? vips_region_new(self.image) : nil
    guard pixels != nil || region != nil else { throw VipsLibrary.failure(in: "pixels") }
  }

  deinit {
    if let region { pictor_g_object_unref(region) }
    pictor_g_object_unref(image)
  }

  /// Returns the bytes of a row, with interleaved bands.
  ///
  /// - Parameter y: The row; not above the row of the previous call.
  /// - Returns: A pointer that is valid until the next call.
  func row(_ y: Int) throws(ImageError) -> UnsafePointer<UInt8> {
    if let pixels { return UnsafePointer(pixels + y * rowBytes) }
    guard let region else { throw VipsLibrary.failure(in: "pixels") }
    var valid = region.pointee.valid
    if y < Int(valid.top) || y >= Int(valid.top + valid.height) {
      valid = VipsRect(
        left: 0, top: CInt(y), width: CInt(size.width), height: CInt(min(strip, size.height - y)))
      guard vips_region_prepare(region, &valid) == 0 else {
        throw VipsLibrary.failure(in: "pixels")
      }
      valid = region.pointee.valid
    }
    // Rows are `bpl` bytes apart. The first row starts at `left`, which is 0 because whole rows are
    // requested.
    let offset = (y - Int(valid.top)) * Int(region.pointee.bpl)
    return UnsafePointer(region.pointee.data + offset)
  }
}

extension Image {
  /// Computes all rows, to find damage.
  borrowing func computeRows() throws(ImageError) {
    let rows = try PixelRows(of: self)
    for y in 0..<size.height { _ = try rows.row(y) }
  }
}
