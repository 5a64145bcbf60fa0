// TestImages: encoded test images, generated so that tests need no files.

import CVips
import Core
import ImagingPipeline

/// Generates images in every format that Pictor reads. All functions may be called from any thread.
///
/// Without given pixels, an image shows `Pixels.scene`.
public enum TestImages {
  /// An error of libvips while writing or reading an image.
  public struct Failure: Error, CustomStringConvertible {
    /// The text of the error.
    public let description: String

    init() {
      // The copy is made under libvips's lock; other threads may add their own errors.
      let text = vips_error_buffer_copy()
      description = text.map { String(cString: $0) } ?? ""
      g_free(text)
      vips_error_clear()
    }

    init(text: String) { description = text }
  }

  /// Starts libvips once, as a worker does, with the modules for HEIC, AVIF and JPEG XL.
  ///
  /// The pipeline starts it: a process starts libvips once, and the first decides about modules.
  public static func start() { started }

  private static let started: Void = {
    do { _ = try Pipeline() } catch { preconditionFailure("libvips does not start: \(error)") }
    Pipeline.loadEverything()
  }()

  /// Encodes a JPEG.
  ///
  /// - Parameters:
  ///   - width: The width of the upright image in pixels.
  ///   - height: The height of the upright image in pixels.
  ///   - quality: 1–100.
  ///   - orientation: The EXIF orientation, 1–8; the scene is stored so that it is upright once the
  ///     orientation is applied.
  ///   - progressive: Whether the JPEG is progressive.
  ///   - profile: `p3`, `srgb` or the path of an ICC profile to embed.
  ///   - bare: Whether all metadata is omitted; otherwise libvips writes Exif.
  public static func jpeg(
    width: Int, height: Int, quality: Int = 90, orientation: Int? = nil, progressive: Bool = false,
    profile: String? = nil, bare: Bool = false
  ) throws -> [UInt8] {
    // A large scene is a small one with enlarged pixels, because computing each pixel would take
    // seconds.
    let zooms = (1...32).filter { width.isMultiple(of: $0) && height.isMultiple(of: $0) }
    let zoom = zooms.first { width * height <= 60_000 * $0 * $0 } ?? 1
    let scene = Pixels.scene(width: width / zoom, height: height / zoom)
    var options = "Q=\(quality)"
    if progressive { options += ",interlace" }
    if bare { options += ",strip" }
    if let profile { options += ",profile=\(profile)" }
    return try encode(
      orientation.map(scene.stored(forOrientation:)) ?? scene, as: ".jpg[\(options)]",
      zoom: zoom, orientation: orientation)
  }

  /// Encodes a PNG with 8 or 16 bits per band, without metadata.
  ///
  /// - Parameters:
  ///   - width: The width in pixels.
  ///   - height: The height in pixels.
  ///   - alpha: Whether the image has alpha: opaque in the upper half, increasingly transparent to
  ///     the left in the lower half.
  ///   - sixteenBits: Whether bands have 16 bits.
  ///   - palette: Whether colours are indexed.
  public static func png(
    width: Int, height: Int, alpha: Bool = false, sixteenBits: Bool = false, palette: Bool = false
  ) throws -> [UInt8] {
    try encode(
      .scene(width: width, height: height, alpha: alpha),
      as: ".png[strip,compression=1\(palette ? ",palette" : "")]", sixteenBits: sixteenBits)
  }

  /// Encodes a lossy still WebP.
  public static func webp(width: Int, height: Int, alpha: Bool = false) throws -> [UInt8] {
    try encode(.scene(width: width, height: height, alpha: alpha), as: ".webp[Q=90,effort=1]")
  }

  /// Encodes a WebP without the metadata that libvips 8.14 always writes.
  ///
  /// - Parameters:
  ///   - width: The width in pixels.
  ///   - height: The height in pixels.
  ///   - alpha: See `png`.
  ///   - frames: The number of frames; above 1 the image is an animation.
  ///   - isExtended: Whether the file has the extended form (VP8X), which an animation requires.
  public static func bareWebP(
    width: Int, height: Int, alpha: Bool = false, frames: Int = 1, isExtended: Bool = false
  ) throws -> [UInt8] {
    let isExtended = isExtended || frames > 1
    let webp =
      frames > 1
      ? try animatedWebP(width: width, height: height, frames: frames)
      : try self.webp(width: width, height: height, alpha: alpha)
    var chunks: [UInt8] = []
    var position = 12
    while position + 8 <= webp.count {
      let kind = String(decoding: webp[position..<position + 4], as: UTF8.self)
      let length = webp[position + 4..<position + 8].reversed().reduce(0) { $0 << 8 | Int($1) }
      var chunk = Array(webp[position..<min(position + 8 + length + length % 2, webp.count)])
      if kind == "VP8X" { chunk[8] &= ~0x2c }
      let isKept = kind == "VP8X" ? isExtended : !["EXIF", "XMP ", "ICCP"].contains(kind)
      if isKept { chunks += chunk }
      position += chunk.count
    }
    return Array("RIFF".utf8) + CodedBitmap.little(chunks.count + 4, width: 4)
      + Array("WEBP".utf8) + chunks
  }

  /// Encodes an uncompressed TIFF.
  public static func tiff(width: Int, height: Int) throws -> [UInt8] {
    try encode(.scene(width: width, height: height), as: ".tif")
  }

  /// Encodes an AVIF; slow, so keep the image small.
  public static func avif(width: Int, height: Int) throws -> [UInt8] {
    try encode(.scene(width: width, height: height), as: ".avif[Q=80,effort=0]")
  }

  /// Encodes a HEIC; slow, so keep the image small.
  public static func heic(width: Int, height: Int) throws -> [UInt8] {
    try encode(.scene(width: width, height: height), as: ".heic[Q=80,compression=hevc,effort=0]")
  }

  /// Encodes an animated GIF with frames of one colour each (see `frameColor`).
  ///
  /// - Parameters:
  ///   - width: The width in pixels.
  ///   - height: The height in pixels.
  ///   - frames: The number of frames.
  ///   - delays: The delay of each frame in ms; `nil` for 100 each.
  ///   - loop: The loop count; 0 means forever.
  public static func gif(
    width: Int, height: Int, frames: Int, delays: [Int]? = nil, loop: Int = 0
  ) throws -> [UInt8] {
    try animation(
      (0..<frames).map { Pixels(width: width, height: height, color: frameColor($0)) },
      delays: delays, loop: loop, as: ".gif[dither=0]")
  }

  /// Encodes an animated lossless WebP with frames of one colour each (see `frameColor`). The
  /// parameters are those of `gif`.
  public static func animatedWebP(
    width: Int, height: Int, frames: Int, delays: [Int]? = nil, loop: Int = 0
  ) throws -> [UInt8] {
    try animation(
      (0..<frames).map { Pixels(width: width, height: height, color: frameColor($0)) },
      delays: delays, loop: loop, as: ".webp[lossless]")
  }

  /// Returns the colour of a frame of `gif` and `animatedWebP`; consecutive frames differ strongly.
  public static func frameColor(_ index: Int) -> [UInt8] {
    [UInt8(index * 97 % 256), index.isMultiple(of: 2) ? 20 : 235, UInt8(255 - index * 53 % 256)]
  }

  /// Encodes an animation of any frames.
  ///
  /// - Parameters:
  ///   - frames: Frames of equal size and number of bands.
  ///   - delays: The delay of each frame in ms; `nil` for 100 each.
  ///   - loop: The loop count; 0 means forever.
  ///   - suffix: The libvips name of the encoder with its options, such as `.gif` or
  ///     `.webp[lossless]`.
  public static func animation(
    _ frames: [Pixels], delays: [Int]? = nil, loop: Int = 0, as suffix: String
  ) throws -> [UInt8] {
    guard let first = frames.first else { throw Failure(text: "an animation of no frames") }
    let height = first.size.height
    let roll = Pixels(
      width: first.size.width, height: height * frames.count, bands: first.bands
    ) { frames[$1 / height][$0, $1 % height] }
    let delays = (delays ?? frames.map { _ in 100 }).map { CInt($0) }
    return try encode(roll, as: suffix) { image in
      vips_image_set_int(image, "page-height", CInt(height))
      vips_image_set_int(image, "loop", CInt(loop))
      vips_image_set_array_int(image, "delay", delays, CInt(delays.count))
    }
  }

  /// Returns the delay of each frame of an animation, in ms.
  public static func delays(of bytes: [UInt8]) throws -> [Int] {
    try withImage(bytes) { image in
      var values: UnsafeMutablePointer<CInt>?
      var count: CInt = 0
      guard vips_image_get_array_int(image, "delay", &values, &count) == 0 else { throw Failure() }
      return UnsafeBufferPointer(start: values, count: Int(count)).map { Int($0) }
    }
  }

  /// Returns the loop count of an animation; 0 means forever.
  public static func loop(of bytes: [UInt8]) throws -> Int {
    try withImage(bytes) { image in
      var value: CInt = 0
      guard vips_image_get_int(image, "loop", &value) == 0 else { throw Failure() }
      return Int(value)
    }
  }

  /// Returns the size that an image's header states; `nil` if libvips does not open it.
  public static func size(of bytes: [UInt8]) -> PixelSize? {
    try? withImage(bytes) {
      PixelSize(width: Int(vips_image_get_width($0)), height: Int(vips_image_get_height($0)))
    }
  }

  /// Opens an image in any format that libvips reads and passes it to a closure.
  static func withImage<Result>(
    _ bytes: [UInt8], options: String = "",
    body: (UnsafeMutablePointer<VipsImage>) throws -> Result
  ) throws -> Result {
    start()
    return try bytes.withUnsafeBytes { buffer in
      guard
        let image = pictor_vips_image_new_from_buffer(buffer.baseAddress, buffer.count, options)
      else { throw Failure() }
      defer { pictor_g_object_unref(image) }
      return try body(image)
    }
  }

  /// Encodes a JPEG of one CMYK colour (0 no ink, 255 full ink), with or without libvips's CMYK
  /// profile.
  public static func cmykJPEG(
    width: Int, height: Int, color: [UInt8], profile: Bool = false
  ) throws -> [UInt8] {
    try encode(
      Pixels(width: width, height: height, color: color),
      as: ".jpg[Q=95\(profile ? ",profile=cmyk" : "")]", interpretation: VIPS_INTERPRETATION_CMYK)
  }

  /// Encodes pixels of four inks (0 none, 255 full) with the encoder of a libvips suffix.
  public static func cmyk(_ pixels: Pixels, as suffix: String) throws -> [UInt8] {
    try encode(pixels, as: suffix, interpretation: VIPS_INTERPRETATION_CMYK)
  }

  /// Returns an SVG: a red field with a blue square in its lower right quarter.
  ///
  /// - Parameters:
  ///   - width: The width of the drawing in user units.
  ///   - height: The height of the drawing in user units.
  ///   - isSized: Whether the SVG has `width` and `height` or only a `viewBox`.
  public static func svg(width: Int, height: Int, isSized: Bool = true) -> [UInt8] {
    let size = isSized ? "width=\"\(width)\" height=\"\(height)\" " : ""
    return Array(
      """
      <svg xmlns="http://www.w3.org/2000/svg" \(size)viewBox="0 0 \(width) \(height)">
      <rect width="100%" height="100%" fill="#ff0000"/>
      <rect x="50%" y="50%" width="50%" height="50%" fill="#0000ff"/></svg>
      """.utf8)
  }

  /// Encodes pixels.
  ///
  /// - Parameters:
  ///   - pixels: 1 to 4 bands.
  ///   - suffix: The libvips name of the encoder with its options, such as `.jpg[Q=90]`.
  ///   - zoom: The side of the square that each pixel is enlarged to.
  ///   - orientation: The EXIF orientation to be recorded; the pixels are stored unchanged.
  ///   - sixteenBits: Whether values are stretched to 16 bits first. The option `bitdepth=16` is
  ///     refused: with it, libvips 8.14 reads past the end of an image of 8 bits.
  ///   - interpretation: The colour space of the bands; `nil` for grey with 1 or 2 bands, otherwise
  ///     sRGB.
  ///   - prepare: Changes the image's metadata.
  public static func encode(
    _ pixels: Pixels, as suffix: String, zoom: Int = 1, orientation: Int? = nil,
    sixteenBits: Bool = false,
    interpretation: VipsInterpretation? = nil,
    prepare: (UnsafeMutablePointer<VipsImage>) -> Void = { _ in }
  ) throws -> [UInt8] {
    guard !suffix.contains("bitdepth=16") else { throw Failure() }
    let isGrey = pixels.bands < 3
    let meaning =
      sixteenBits
      ? (isGrey ? VIPS_INTERPRETATION_GREY16 : VIPS_INTERPRETATION_RGB16)
      : (isGrey ? VIPS_INTERPRETATION_B_W : VIPS_INTERPRETATION_sRGB)
    func encoded(_ memory: UnsafeRawBufferPointer) throws -> [UInt8] {
      try encode(
        memory, size: pixels.size, bands: pixels.bands,
        format: sixteenBits ? VIPS_FORMAT_USHORT : VIPS_FORMAT_UCHAR,
        as: interpretation ?? meaning, suffix: suffix, zoom: zoom
      ) { image in
        if let orientation { vips_image_set_int(image, "orientation", CInt(orientation)) }
        prepare(image)
      }
    }
    return sixteenBits
      ? try pixels.values.map { UInt16($0) * 257 }.withUnsafeBytes(encoded)
      : try pixels.values.withUnsafeBytes(encoded)
  }

  /// Encodes values as they lie in memory.
  static func encode(
    _ memory: UnsafeRawBufferPointer, size: PixelSize, bands: Int, format: VipsBandFormat,
    as meaning: VipsInterpretation, suffix: String, zoom: Int = 1,
    prepare: (UnsafeMutablePointer<VipsImage>) -> Void
  ) throws -> [UInt8] {
    start()
    let bare = vips_image_new_from_memory_copy(
      memory.baseAddress, memory.count, CInt(size.width), CInt(size.height), CInt(bands), format)
    guard let bare else { throw Failure() }
    defer { pictor_g_object_unref(bare) }
    bare.pointee.Type = meaning
    var zoomed: UnsafeMutablePointer<VipsImage>?
    guard pictor_vips_run("zoom", bare, "xfac=\(zoom),yfac=\(zoom)", &zoomed) == 0, let zoomed
    else { throw Failure() }
    defer { pictor_g_object_unref(zoomed) }
    prepare(zoomed)
    return try bytes(of: zoomed, as: suffix)
  }

  /// Writes an image with the encoder of a libvips suffix.
  static func bytes(of image: UnsafeMutablePointer<VipsImage>, as suffix: String) throws -> [UInt8]
  {
    var bytes: UnsafeMutableRawPointer?
    var count = 0
    guard pictor_vips_image_write_to_buffer(image, suffix, &bytes, &count) == 0, let bytes else {
      throw Failure()
    }
    defer { g_free(bytes) }
    return [UInt8](UnsafeRawBufferPointer(start: bytes, count: count))
  }
}
