// Image: the one owner of a libvips image, and the operations on it that are one call.

import CVips
import Model

/// An image of libvips's: mostly a recipe that computes pixels when they are asked for, and keeps alive what it is
/// made of. Each operation gives a new one.
struct Image: ~Copyable {
  private let image: UnsafeMutablePointer<VipsImage>

  /// Runs an operation of libvips's and takes over its result.
  ///
  /// - Parameter stage: What to call it in the log when it fails.
  init(
    _ stage: StaticString,
    _ operation: (UnsafeMutablePointer<UnsafeMutablePointer<VipsImage>?>) -> CInt
  ) throws(ImageError) {
    var result: UnsafeMutablePointer<VipsImage>?
    guard operation(&result) == 0, let result else { throw VipsLibrary.failure(in: stage) }
    image = result
  }

  /// An image in memory without pixels yet, all of which are to be written, row by row: 8 bits a band, grey for 1 and 2, sRGB for more.
  ///
  /// - Parameter profile: Says more of its colours; empty: nothing does.
  init(blank size: PixelSize, bands: Int, profile: [UInt8]) throws(ImageError) {
    try self.init("pixels") { result in
      guard let image = Self.undecoded(size, bands, profile) else { return -1 }
      guard vips_image_write_prepare(image) == 0 else {
        pictor_g_object_unref(image)
        return -1
      }
      result.pointee = image
      return 0
    }
  }

  /// The same without room for pixels: an image to ask what it is, and nothing else.
  init(undecoded size: PixelSize, bands: Int, profile: [UInt8]) throws(ImageError) {
    try self.init("pixels") { result in
      result.pointee = Self.undecoded(size, bands, profile)
      return result.pointee == nil ? -1 : 0
    }
  }

  /// A new image with one reference, the caller's.
  private static func undecoded(_ size: PixelSize, _ bands: Int, _ profile: [UInt8])
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

  /// Lends the pointer to C. It may not be kept.
  func withVipsImage<Result: ~Copyable, Failure: Error>(
    _ body: (UnsafeMutablePointer<VipsImage>) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try body(image)
  }

  /// The result of an operation that takes this image.
  func made(
    _ stage: StaticString,
    _ operation: (
      UnsafeMutablePointer<VipsImage>, UnsafeMutablePointer<UnsafeMutablePointer<VipsImage>?>
    ) -> CInt
  ) throws(ImageError) -> Image {
    let image = image
    return try Image(stage) { operation(image, $0) }
  }

  // MARK: What it is

  var size: PixelSize {
    PixelSize(width: Int(vips_image_get_width(image)), height: Int(vips_image_get_height(image)))
  }

  var bands: Int { Int(vips_image_get_bands(image)) }
  /// libvips counts the fourth byte of packed Lab for one.
  var hasAlpha: Bool {
    vips_image_get_coding(image) != VIPS_CODING_LABQ && vips_image_hasalpha(image) != 0
  }
  var format: VipsBandFormat { vips_image_get_format(image) }
  var interpretation: VipsInterpretation { vips_image_get_interpretation(image) }
  /// How far libvips moved the image when it last cut or padded it: minus what was cut off at the left and the top.
  var origin: (x: Int, y: Int) {
    (Int(vips_image_get_xoffset(image)), Int(vips_image_get_yoffset(image)))
  }

  /// A number from the metadata; `nil` when there is none of that name.
  func integer(_ name: String) -> Int? {
    var value: CInt = 0
    guard vips_image_get_typeof(image, name) != 0, vips_image_get_int(image, name, &value) == 0
    else { return nil }
    return Int(value)
  }

  /// Numbers from the metadata, empty when there are none of that name.
  func integers(_ name: String) -> [CInt] {
    var values: UnsafeMutablePointer<CInt>?
    var count: CInt = 0
    guard vips_image_get_typeof(image, name) != 0,
      vips_image_get_array_int(image, name, &values, &count) == 0, let values
    else { return [] }
    return Array(UnsafeBufferPointer(start: values, count: Int(count)))
  }

  // MARK: What can be done with it

  /// The same pixels, computed now and held in memory, so that they can be read in any order and more than once.
  consuming func inMemory() throws(ImageError) -> Image {
    try made("pixels") { image, result in
      result.pointee = vips_image_copy_memory(image)
      return result.pointee == nil ? -1 : 0
    }
  }

  /// Writes a row of an image that was made blank; in any order.
  func write(_ bytes: UnsafePointer<UInt8>, row: Int) throws(ImageError) {
    // libvips only reads what it is given here.
    guard
      vips_image_write_line(image, CInt(row), UnsafeMutablePointer(mutating: bytes)) == 0
    else { throw VipsLibrary.failure(in: "pixels") }
  }

  /// A part of it.
  func cut(x: Int, y: Int, _ size: PixelSize) throws(ImageError) -> Image {
    try made("crop") {
      pictor_vips_extract_area($0, $1, CInt(x), CInt(y), CInt(size.width), CInt(size.height))
    }
  }

  /// It, on a larger ground.
  func placed(x: Int, y: Int, on size: PixelSize, background: [Double]) throws(ImageError)
    -> Image
  {
    try made("padding") { image, result in
      let array = vips_array_double_new(background, CInt(background.count))
      defer { vips_area_unref(pictor_vips_area_of_array(array)) }
      return pictor_vips_embed(
        image, result, CInt(x), CInt(y), CInt(size.width), CInt(size.height), array)
    }
  }

  /// It, with the ground showing where it was transparent, and opaque.
  func flattened(on background: [Double]) throws(ImageError) -> Image {
    try made("background") { image, result in
      let array = vips_array_double_new(background, CInt(background.count))
      defer { vips_area_unref(pictor_vips_area_of_array(array)) }
      return pictor_vips_flatten(image, result, array)
    }
  }

  /// It, in another colour space.
  func converted(to space: VipsInterpretation) throws(ImageError) -> Image {
    try made("colour") { pictor_vips_colourspace($0, $1, space) }
  }

  /// It, in other numbers.
  func cast(to format: VipsBandFormat) throws(ImageError) -> Image {
    try made("cast") { pictor_vips_cast($0, $1, format) }
  }

  /// Some of its bands.
  func bands(_ first: Int, count: Int) throws(ImageError) -> Image {
    try made("bands") { pictor_vips_extract_band($0, $1, CInt(first), CInt(count)) }
  }

  /// It, with an opaque alpha.
  func withOpaqueAlpha() throws(ImageError) -> Image {
    try made("alpha") { pictor_vips_bandjoin_const1($0, $1, 255) }
  }
}

extension PixelSize {
  /// How many pixels that is.
  var pixels: Int { width * height }
  /// Width and height exchanged.
  var turned: PixelSize { PixelSize(width: height, height: width) }
}
