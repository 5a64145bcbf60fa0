// Image: the sole owner of a libvips image, with the operations that are a single call.

import CVips
import Core

/// A libvips image: mostly a pipeline that computes pixels on demand and keeps its inputs alive.
/// Each operation returns a new image.
struct Image: ~Copyable {
  private let image: UnsafeMutablePointer<VipsImage>

  /// Runs a libvips operation and takes ownership of its result.
  ///
  /// - Parameter stage: The name of the operation in error messages.
  init(
    _ stage: StaticString,
    operation: (UnsafeMutablePointer<UnsafeMutablePointer<VipsImage>?>) -> CInt
  ) throws(ImageError) {
    var result: UnsafeMutablePointer<VipsImage>?
    guard operation(&result) == 0, let result else { throw VipsLibrary.failure(in: stage) }
    image = result
  }

  /// Creates an image in memory whose rows must all be written. Bands have 8 bits: grey for 1 or 2
  /// bands, sRGB for more.
  ///
  /// - Parameter profile: The ICC profile; empty for none.
  init(blank size: PixelSize, bands: Int, profile: [UInt8]) throws(ImageError) {
    try self.init("pixels") { result in
      guard let image = Self.undecoded(size, bands: bands, profile: profile) else { return -1 }
      guard vips_image_write_prepare(image) == 0 else {
        pictor_g_object_unref(image)
        return -1
      }
      result.pointee = image
      return 0
    }
  }

  /// Creates an image of pixels in memory from malloc(3), which it frees. On failure the caller
  /// still owns them.
  ///
  /// - Parameters:
  ///   - pixels: The bands of all pixels, row by row without gaps: grey for 1 or 2 bands, sRGB for
  ///     more.
  ///   - bytesOfBand: 1 or 2.
  ///   - profile: The ICC profile; empty for none.
  init(
    owning pixels: UnsafeMutablePointer<UInt8>, _ size: PixelSize, bands: Int, bytesOfBand: Int,
    profile: [UInt8]
  ) throws(ImageError) {
    let isDeep = bytesOfBand == 2
    let meaning: VipsInterpretation =
      switch (bands < 3, isDeep) {
      case (true, false): VIPS_INTERPRETATION_B_W
      case (true, true): VIPS_INTERPRETATION_GREY16
      case (false, false): VIPS_INTERPRETATION_sRGB
      case (false, true): VIPS_INTERPRETATION_RGB16
      }
    try self.init("pixels") { result in
      result.pointee = pictor_vips_image_owning(
        pixels, size.width * size.height * bands * bytesOfBand, CInt(size.width),
        CInt(size.height), CInt(bands), isDeep ? VIPS_FORMAT_USHORT : VIPS_FORMAT_UCHAR, meaning)
      guard let image = result.pointee else { return -1 }
      if !profile.isEmpty {
        vips_image_set_blob_copy(image, VIPS_META_ICC_NAME, profile, profile.count)
      }
      return 0
    }
  }

  /// Creates an image without memory for pixels, of which only the properties can be read.
  init(undecoded size: PixelSize, bands: Int, profile: [UInt8]) throws(ImageError) {
    try self.init("pixels") { result in
      result.pointee = Self.undecoded(size, bands: bands, profile: profile)
      return result.pointee == nil ? -1 : 0
    }
  }

  /// Returns a new image with one reference, owned by the caller.
  private static func undecoded(_ size: PixelSize, bands: Int, profile: [UInt8])
    -> UnsafeMutablePointer<VipsImage>?
  {
    guard let image = vips_image_new_memory() else { return nil }
    vips_image_init_fields(
      image, CInt(size.width), CInt(size.height), CInt(bands), VIPS_FORMAT_UCHAR,
      VIPS_CODING_NONE, bands < 3 ? VIPS_INTERPRETATION_B_W : VIPS_INTERPRETATION_sRGB, 1, 1)
    if !profile.isEmpty {
      vips_image_set_blob_copy(image, VIPS_META_ICC_NAME, profile, profile.count)
    }
    return image
  }

  deinit { pictor_g_object_unref(image) }

  /// Passes the pointer to C for the duration of the call.
  func withVipsImage<Result: ~Copyable, Failure: Error>(
    _ body: (UnsafeMutablePointer<VipsImage>) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try body(image)
  }

  /// Returns the result of an operation on this image.
  func made(
    _ stage: StaticString,
    operation: (
      UnsafeMutablePointer<VipsImage>, UnsafeMutablePointer<UnsafeMutablePointer<VipsImage>?>
    ) -> CInt
  ) throws(ImageError) -> Image {
    let image = image
    return try Image(stage) { operation(image, $0) }
  }

  /// Returns the result of an operation of libvips on this image.
  ///
  /// - Parameters:
  ///   - operation: Its name, as vips(1) has it.
  ///   - arguments: Its arguments, as vips(1) takes them: `width=10,extend=copy`.
  func made(
    _ stage: StaticString, by operation: String, _ arguments: String = ""
  ) throws(ImageError) -> Image {
    try made(stage) { pictor_vips_run(operation, $0, arguments, $1) }
  }

  /// Creates a black image of one band.
  init(black size: PixelSize) throws(ImageError) {
    try self.init("black") {
      pictor_vips_run("black", nil, "width=\(size.width),height=\(size.height)", $0)
    }
  }

  /// Returns the image as encoded by a saver of libvips.
  ///
  /// - Parameter keepsAll: Whether an Exif block is written even if the image has no metadata.
  func saved(
    by saver: String, _ arguments: String, keepsAll: Bool = false
  ) throws(ImageError) -> GLibBytes {
    // A saver that keeps metadata creates an Exif block if the image has no Exif.
    let isStripped = !keepsAll && !hasMetadata && !hasProfile
    let image = image
    return try GLibBytes("encode") {
      pictor_vips_save(saver + "_buffer", image, arguments + ",strip=\(isStripped)", $0, $1)
    }
  }

  // MARK: Properties

  var size: PixelSize {
    PixelSize(width: Int(vips_image_get_width(image)), height: Int(vips_image_get_height(image)))
  }

  var bands: Int { Int(vips_image_get_bands(image)) }
  /// The bytes of a pixel.
  var pixelBytes: Int { bands * Int(vips_format_sizeof(format)) }
  /// Whether the image has alpha. libvips takes the fourth byte of packed Lab for alpha.
  var hasAlpha: Bool {
    vips_image_get_coding(image) != VIPS_CODING_LABQ && vips_image_hasalpha(image) != 0
  }
  /// The pixels of a millimetre, across and down.
  var resolution: (across: Double, down: Double) {
    (vips_image_get_xres(image), vips_image_get_yres(image))
  }
  var format: VipsBandFormat { vips_image_get_format(image) }
  var interpretation: VipsInterpretation { vips_image_get_interpretation(image) }
  /// The offset of the last crop or padding; negative values are the pixels removed at the left and
  /// the top.
  var origin: (x: Int, y: Int) {
    (Int(vips_image_get_xoffset(image)), Int(vips_image_get_yoffset(image)))
  }

  /// Returns an integer from the metadata; `nil` if absent.
  func integer(_ name: String) -> Int? {
    var value: CInt = 0
    guard vips_image_get_typeof(image, name) != 0, vips_image_get_int(image, name, &value) == 0
    else { return nil }
    return Int(value)
  }

  /// The name that libvips's loaders of PNG and GIF give the bits of an index.
  private static let paletteDepth = "palette-bit-depth"

  /// Whether the source's pixels were indices of a palette.
  var hasPalette: Bool { integer(Self.paletteDepth) != nil }

  /// Notes that the source's pixels are indices of a palette.
  func notePalette() { vips_image_set_int(image, Self.paletteDepth, 8) }

  /// Returns an array of integers from the metadata; empty if absent.
  func integers(_ name: String) -> [CInt] {
    var values: UnsafeMutablePointer<CInt>?
    var count: CInt = 0
    guard vips_image_get_typeof(image, name) != 0,
      vips_image_get_array_int(image, name, &values, &count) == 0, let values
    else { return [] }
    return Array(UnsafeBufferPointer(start: values, count: Int(count)))
  }

  /// Returns bytes of the metadata; `nil` if absent.
  func blob(_ name: String) -> [UInt8]? {
    var data: UnsafeRawPointer?
    var count = 0
    guard vips_image_get_typeof(image, name) != 0,
      vips_image_get_blob(image, name, &data, &count) == 0, let data
    else { return nil }
    return Array(UnsafeRawBufferPointer(start: data, count: count))
  }

  /// The names of all metadata, built-in fields such as the width included.
  var fields: [String] {
    guard let names = vips_image_get_fields(image) else { return [] }
    defer { g_strfreev(names) }
    return sequence(first: names) { $0 + 1 }.lazy.map(\.pointee).prefix { $0 != nil }
      .compactMap { $0.map { String(cString: $0) } }
  }

  /// The bytes of all pixels, row by row without gaps; `nil` if they are not in memory. Only those
  /// of an image created by `init(blank:bands:profile:)` may be written.
  var pixels: UnsafeMutablePointer<UInt8>? {
    guard
      image.pointee.dtype == VIPS_IMAGE_SETBUF || image.pointee.dtype == VIPS_IMAGE_SETBUF_FOREIGN
    else { return nil }
    return image.pointee.data.map {
      UnsafeMutableRawPointer($0).assumingMemoryBound(to: UInt8.self)
    }
  }

  /// Sets the resolution of an image that no other is made from yet.
  func setResolution(_ resolution: (across: Double, down: Double)) {
    (image.pointee.Xres, image.pointee.Yres) = resolution
  }

  // MARK: Operations

  /// Whether the image has no metadata, not even a loader's.
  var isBare: Bool { image.pointee.meta_traverse == nil }

  /// Computes all pixels into memory, unless they are there, so that they can be read repeatedly
  /// and in any order.
  consuming func inMemory() throws(ImageError) -> Image {
    if image.pointee.dtype == VIPS_IMAGE_SETBUF { return self }
    return try made("pixels") { image, result in
      result.pointee = vips_image_copy_memory(image)
      return result.pointee == nil ? -1 : 0
    }
  }

  /// Calls a closure with the bytes of all pixels, row by row without gaps, and the size; they are
  /// valid during the call. Computes what is not in memory.
  func withPixels<Result: ~Copyable>(
    _ body: (UnsafePointer<UInt8>, PixelSize) throws(ImageError) -> Result
  ) throws(ImageError) -> Result {
    if let pixels { return try body(pixels, size) }
    let copy = try copied().inMemory()
    guard let pixels = copy.pixels else {
      throw .internal(detail: "pixels: the image is not in memory")
    }
    // `copy` lives as long as the call.
    return try copy.withVipsImage { _ throws(ImageError) in try body(pixels, copy.size) }
  }

  /// Writes a row of an image created by `init(blank:bands:profile:)`, in any order; different rows
  /// also at the same time.
  func write(_ bytes: UnsafePointer<UInt8>, row: Int) throws(ImageError) {
    guard let pixels else { throw .internal(detail: "pixels: the image is not in memory") }
    let count = size.width * pixelBytes
    (pixels + row * count).update(from: bytes, count: count)
  }

  /// Returns an area of the image.
  func cut(x: Int, y: Int, _ size: PixelSize) throws(ImageError) -> Image {
    try made(
      "crop", by: "extract_area",
      "left=\(x),top=\(y),width=\(size.width),height=\(size.height)")
  }

  /// Places the image on a larger background.
  func placed(x: Int, y: Int, on size: PixelSize, background: [Double]) throws(ImageError)
    -> Image
  {
    try made("padding", x: x, y: y, on: size, "background,background=\(Self.list(background))")
  }

  /// Places the image on a larger one, or cuts it off where that is smaller.
  ///
  /// - Parameter extend: What is around the image (`VipsExtend`).
  func made(
    _ stage: StaticString, x: Int, y: Int, on size: PixelSize, _ extend: String
  ) throws(ImageError) -> Image {
    try made(
      stage, by: "embed",
      "x=\(x),y=\(y),width=\(size.width),height=\(size.height),extend=\(extend)")
  }

  /// Returns an array as libvips's arguments have it.
  static func list(_ numbers: [Double]) -> String {
    numbers.map { "\($0)" }.joined(separator: " ")
  }

  /// Flattens the image onto a background colour.
  func flattened(on background: [Double]) throws(ImageError) -> Image {
    try made("background", by: "flatten", "background=\(Self.list(background))")
  }

  /// Multiplies each band by its factor, and adds its summand.
  ///
  /// - Parameter toBytes: Whether the result has 8 bits, without the fraction; otherwise it has
  ///   floats.
  func scaled(
    _ stage: StaticString, by factors: [Double], plus summands: [Double], toBytes: Bool = false
  ) throws(ImageError) -> Image {
    try made(
      stage, by: "linear", "a=\(Self.list(factors)),b=\(Self.list(summands)),uchar=\(toBytes)")
  }

  /// Returns a copy with metadata of its own.
  func copied(_ stage: StaticString = "copy") throws(ImageError) -> Image {
    try made(stage, by: "copy")
  }

  /// Returns the same pixels in another meaning.
  func named(_ stage: StaticString, _ space: VipsInterpretation) throws(ImageError) -> Image {
    try made(stage, by: "copy", "interpretation=\(space.name)")
  }

  /// Converts the image to another colour space.
  func converted(to space: VipsInterpretation) throws(ImageError) -> Image {
    try made("colour", by: "colourspace", "space=\(space.name)")
  }

  /// Converts the image to another number format.
  func cast(to format: VipsBandFormat) throws(ImageError) -> Image {
    let name = String(cString: vips_enum_nick(vips_band_format_get_type(), CInt(format.rawValue)))
    return try made("cast", by: "cast", "format=\(name)")
  }

  /// Returns a range of bands.
  func bands(_ first: Int, count: Int) throws(ImageError) -> Image {
    try made("bands", by: "extract_band", "band=\(first),n=\(count)")
  }

  /// Adds an opaque alpha.
  func withOpaqueAlpha() throws(ImageError) -> Image {
    try made("alpha", by: "bandjoin_const", "c=255")
  }

  /// Multiplies the colours by alpha, as floats.
  func premultiplied() throws(ImageError) -> Image {
    try made("alpha", by: "premultiply", "max-alpha=\(fullAlpha)")
  }

  /// Divides the colours by alpha.
  ///
  /// - Parameter full: The alpha of an opaque pixel.
  func unpremultiplied(_ full: Double) throws(ImageError) -> Image {
    try made("alpha", by: "unpremultiply", "max-alpha=\(full)")
  }
}

extension VipsInterpretation {
  /// The name in libvips's arguments.
  fileprivate var name: String {
    String(cString: vips_enum_nick(vips_interpretation_get_type(), CInt(rawValue)))
  }
}
