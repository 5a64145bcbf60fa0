// CodedPlanes: decodes AV1, HEVC and WebP images to their planes.

import CDav1d
import CDe265
import CWebP
import Core

/// A decoded AV1 image.
///
/// libvips has libheif convert the whole source to RGB, which costs more than decoding it.
struct AV1Planes: ~Copyable {
  let image: PlanarImage
  /// Owned; freed by `deinit`.
  private let picture: UnsafeMutablePointer<Dav1dPicture>

  /// Decodes an image.
  ///
  /// - Parameter size: The size that the container gives.
  /// - Returns: `nil` for grey images, other colour models (`ColourMatrix`) and other sizes, and
  ///   for damage.
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

/// A decoded HEVC image.
struct HEVCPlanes: ~Copyable {
  let image: PlanarImage
  /// Owned, with the planes; freed by `deinit`.
  private let decoder: UnsafeMutableRawPointer

  /// Decodes an image, on the calling thread: libde265 waits forever for threads that it cannot
  /// start.
  ///
  /// - Parameters:
  ///   - size: The size that the container gives.
  ///   - isSmoothed: Whether the edges of blocks are filtered, and samples corrected (ITU-T H.265,
  ///     8.7).
  /// - Returns: `nil` for grey images, other colour models (`ColourMatrix`) and other sizes, for
  ///   several pictures, and for damage.
  init?(_ tile: HEIFImage.Tile, size: PixelSize, isSmoothed: Bool = true) {
    guard let decoder = de265_new_decoder() else { return nil }
    if !isSmoothed {
      de265_set_parameter_bool(decoder, DE265_DECODER_PARAM_DISABLE_DEBLOCKING, 1)
      de265_set_parameter_bool(decoder, DE265_DECODER_PARAM_DISABLE_SAO, 1)
    }
    var limit = Self.samples(of: size)
    let image = withUnsafeMutablePointer(to: &limit) { limit in
      Self.limit(decoder, to: limit)
      return (try? Self.push(tile, to: decoder)) == true
        ? Self.picture(of: decoder).flatMap { Self.planes(of: $0, model: tile.model) } : nil
    }
    guard let image, image.luma.size == size else {
      de265_free_decoder(decoder)
      return nil
    }
    self.decoder = decoder
    self.image = image
  }

  deinit { de265_free_decoder(decoder) }

  /// Returns whether black is 0 in an image, also in a grey one; `nil` for damage. Decodes it.
  static func isFullRange(_ tile: HEIFImage.Tile) -> Bool? {
    guard let decoder = de265_new_decoder() else { return nil }
    defer { de265_free_decoder(decoder) }
    guard (try? push(tile, to: decoder)) == true else { return nil }
    return picture(of: decoder).map { de265_get_image_full_range_flag($0) != 0 }
  }

  /// The most samples of luma that an image of a size is coded with: in whole blocks of at most 64
  /// × 64.
  private static func samples(of size: PixelSize) -> Int { (size.width + 64) * (size.height + 64) }

  /// Has the decoder refuse larger pictures before it asks for their memory.
  ///
  /// - Parameter samples: Their most samples of luma; has to be valid until the picture is decoded.
  private static func limit(
    _ decoder: UnsafeMutableRawPointer, to samples: UnsafeMutablePointer<Int>
  ) {
    guard let usual = de265_get_default_image_allocation_functions() else { return }
    var functions = usual.pointee
    functions.get_buffer = { decoder, spec, picture, limit in
      guard let spec, let limit,
        Int(spec.pointee.width) * Int(spec.pointee.height) <= limit.load(as: Int.self)
      else { return 0 }
      return de265_get_default_image_allocation_functions()?.pointee.get_buffer?(
        decoder, spec, picture, nil) ?? 0
    }
    de265_set_image_allocation_functions(decoder, &functions, samples)
  }

  /// Gives the decoder all parts of an image (ISO/IEC 14496-15, 8.3.2.1.2).
  ///
  /// - Returns: Whether they are of one picture.
  private static func push(
    _ tile: HEIFImage.Tile, to decoder: UnsafeMutableRawPointer
  ) throws(EndOfBytes) -> Bool {
    var parameters = tile.configuration
    // libheif takes no other lengths than those of 4 bytes.
    guard try parameters.number(at: 21, width: 1) & 3 == 3 else { return false }
    _ = try parameters.take(22)
    for _ in 0..<(try parameters.number(1)) {
      _ = try parameters.byte()
      for _ in 0..<(try parameters.number(2)) {
        let unit = try parameters.take(try parameters.number(2))
        // Parameters and messages, no part of a picture (ITU-T H.265, table 7-1).
        guard try (32...40).contains(type(of: unit)), push(unit, to: decoder) else { return false }
      }
    }
    var pictures = 0
    var units = ByteReader(tile.data)
    while !units.isAtEnd {
      let unit = try units.take(try units.number(4))
      if try isStartOfPicture(unit) { pictures += 1 }
      guard push(unit, to: decoder) else { return false }
    }
    return pictures == 1 && de265_flush_data(decoder) == DE265_OK
  }

  private static func push(
    _ unit: UnsafeRawBufferPointer, to decoder: UnsafeMutableRawPointer
  ) -> Bool {
    guard let count = CInt(exactly: unit.count) else { return false }
    return de265_push_NAL(decoder, unit.baseAddress, count, 0, nil) == DE265_OK
  }

  /// Whether a unit is the first slice of a picture (ITU-T H.265, 7.3.1.2 and 7.3.6.1).
  private static func isStartOfPicture(_ unit: UnsafeRawBufferPointer) throws(EndOfBytes) -> Bool {
    guard try type(of: unit) < 32 else { return false }
    return try ByteReader(unit).number(at: 2, width: 1) & 0x80 != 0
  }

  /// Returns nal_unit_type (ITU-T H.265, 7.3.1.2).
  private static func type(of unit: UnsafeRawBufferPointer) throws(EndOfBytes) -> Int {
    try ByteReader(unit).number(at: 0, width: 1) >> 1 & 0x3f
  }

  /// Decodes what was pushed.
  private static func picture(of decoder: UnsafeMutableRawPointer) -> OpaquePointer? {
    var more: CInt = 1
    while more != 0 {
      // An image with warnings is left to libheif, which ignores them.
      guard de265_decode(decoder, &more) == DE265_OK, de265_get_warning(decoder) == DE265_OK else {
        return nil
      }
      if let picture = de265_peek_next_picture(decoder) { return picture }
    }
    return nil
  }

  private static func planes(
    of picture: OpaquePointer, model: HEIFImage.ColourModel?
  ) -> PlanarImage? {
    let model =
      model
      ?? HEIFImage.ColourModel(
        coefficients: Int(de265_get_image_matrix_coefficients(picture)),
        isFullRange: de265_get_image_full_range_flag(picture) != 0)
    guard let luma = plane(0, of: picture), let blue = plane(1, of: picture),
      let red = plane(2, of: picture), let matrix = ColourMatrix(model, depth: luma.depth)
    else { return nil }
    return PlanarImage(luma: luma, blue: blue, red: red, matrix: matrix)
  }

  private static func plane(_ channel: CInt, of picture: OpaquePointer) -> Plane? {
    var stride: CInt = 0
    let size = PixelSize(
      width: Int(de265_get_image_width(picture, channel)),
      height: Int(de265_get_image_height(picture, channel)))
    guard de265_get_chroma_format(picture) != de265_chroma_mono, size.width > 0, size.height > 0,
      let start = de265_get_image_plane(picture, channel, &stride)
    else { return nil }
    return Plane(
      start: UnsafeRawPointer(start), stride: Int(stride), size: size,
      depth: Int(de265_get_bits_per_pixel(picture, channel)))
  }
}

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
  /// - Returns: `nil` for what libvips has to decode: alpha, frames, lossless images; and for
  ///   damage, which libvips reports.
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
      let matrix = ColourMatrix(.init(coefficients: 6, isFullRange: false), depth: 8)
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
