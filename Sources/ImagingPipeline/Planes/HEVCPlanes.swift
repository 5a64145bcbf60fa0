// HEVCPlanes: decodes an HEVC image to its planes with libde265.

import CDe265
import Model
import Platform

/// A decoded HEVC image.
struct HEVCPlanes: ~Copyable {
  let image: PlanarImage
  /// Owned, with the planes; freed by `deinit`.
  private let decoder: UnsafeMutableRawPointer

  /// Decodes an image, on the calling thread: libde265 waits forever for threads that it cannot start.
  ///
  /// - Parameters:
  ///   - tile: The coded image.
  ///   - size: The size that the container gives.
  ///   - isSmoothed: Whether the edges of blocks are filtered, and samples corrected (ITU-T H.265, 8.7).
  /// - Returns: `nil` for grey images, other colour models (`ColourMatrix`) and other sizes, for several pictures, and for
  ///   damage.
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

  /// The most samples of luma that an image of a size is coded with: in whole blocks of at most 64 × 64.
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
