// AV1Planes: decodes an AV1 image to its planes with dav1d.

import CDav1d
import Model

/// A decoded AV1 image.
///
/// libvips has libheif convert the whole source to RGB, which costs more than decoding it.
struct AV1Planes: ~Copyable {
  let image: PlanarImage
  /// Owned; freed by `deinit`.
  private let picture: UnsafeMutablePointer<Dav1dPicture>

  /// Decodes an image.
  ///
  /// - Parameters:
  ///   - data: The coded image.
  ///   - size: The size that the container gives.
  ///   - model: The container's colour model.
  ///   - threads: The most threads that decode.
  /// - Returns: `nil` for grey images, other colour models (`ColourMatrix`) and other sizes, and for damage.
  init?(
    _ data: UnsafeRawBufferPointer, size: PixelSize, model: HEIFImage.ColourModel?,
    threads: Int = 1
  ) {
    if let model, !ColourMatrix.exists(for: model.coefficients) { return nil }
    let picture = UnsafeMutablePointer<Dav1dPicture>.allocate(capacity: 1)
    picture.initialize(to: Dav1dPicture())
    guard Self.decode(data, size: size, threads: threads, to: picture),
      let image = Self.planes(of: picture.pointee, model: model), image.luma.size == size
    else {
      Self.free(picture)
      return nil
    }
    self.picture = picture
    self.image = image
  }

  deinit { Self.free(picture) }

  private static func free(_ picture: UnsafeMutablePointer<Dav1dPicture>) {
    // Does nothing for an empty picture.
    dav1d_picture_unref(picture)
    picture.deallocate()
  }

  /// Decodes one picture.
  private static func decode(
    _ item: UnsafeRawBufferPointer, size: PixelSize, threads: Int,
    to picture: UnsafeMutablePointer<Dav1dPicture>
  ) -> Bool {
    var settings = Dav1dSettings()
    dav1d_default_settings(&settings)
    pictor_dav1d_silence(&settings)
    settings.n_threads = CInt(threads)
    settings.max_frame_delay = 1
    settings.all_layers = 0
    settings.frame_size_limit = CUnsignedInt(clamping: size.pixels)
    var context: OpaquePointer?
    guard dav1d_open(&context, &settings) == 0 else { return false }
    // The picture has its own reference to what it needs.
    defer { dav1d_close(&context) }
    var data = Dav1dData()
    guard let copy = dav1d_data_create(&data, item.count) else { return false }
    defer { dav1d_data_unref(&data) }
    UnsafeMutableRawBufferPointer(start: copy, count: item.count).copyMemory(from: item)
    guard dav1d_send_data(context, &data) == 0 else { return false }
    // The second call takes a picture that was kept back for a better layer.
    return dav1d_get_picture(context, picture) == 0 || dav1d_get_picture(context, picture) == 0
  }

  private static func planes(
    of picture: Dav1dPicture, model: HEIFImage.ColourModel?
  ) -> PlanarImage? {
    guard let sequence = picture.seq_hdr, let y = picture.data.0, let cb = picture.data.1,
      let cr = picture.data.2
    else { return nil }
    let depth = Int(picture.p.bpc)
    let size = PixelSize(width: Int(picture.p.w), height: Int(picture.p.h))
    let half = PixelSize(width: (size.width + 1) / 2, height: (size.height + 1) / 2)
    let colours: PixelSize
    switch picture.p.layout {
    case DAV1D_PIXEL_LAYOUT_I420: colours = half
    case DAV1D_PIXEL_LAYOUT_I422: colours = PixelSize(width: half.width, height: size.height)
    case DAV1D_PIXEL_LAYOUT_I444: colours = size
    default: return nil
    }
    let model =
      model
      ?? HEIFImage.ColourModel(
        coefficients: Int(sequence.pointee.mtrx.rawValue),
        isFullRange: sequence.pointee.color_range != 0)
    guard let matrix = ColourMatrix(model, depth: depth) else { return nil }
    func plane(_ start: UnsafeMutableRawPointer, _ stride: Int, _ size: PixelSize) -> Plane {
      Plane(start: UnsafeRawPointer(start), stride: stride, size: size, depth: depth)
    }
    return PlanarImage(
      luma: plane(y, picture.stride.0, size), blue: plane(cb, picture.stride.1, colours),
      red: plane(cr, picture.stride.1, colours), matrix: matrix)
  }
}
