// HEVCPlanes: decodes an HEVC image to its planes with libde265.

import CDe265
import Model
import Platform

/// A decoded HEVC image.
struct HEVCPlanes: ~Copyable {
  let image: PlanarImage
  /// Owned, with the planes; freed by `deinit`.
  private let decoder: UnsafeMutableRawPointer

  /// Decodes an image.
  ///
  /// - Parameters:
  ///   - tile: The coded image.
  ///   - size: The size that the container gives.
  ///   - model: The container's colour model.
  ///   - isSmoothed: Whether the edges of blocks are filtered, and samples corrected (ITU-T H.265, 8.7).
  ///   - threads: The most threads that decode. They help for images whose rows can be decoded independently.
  /// - Returns: `nil` for grey images, other colour models (`ColourMatrix`) and other sizes, for several pictures, and for
  ///   damage.
  init?(
    _ tile: HEIFPicture.Tile, size: PixelSize, model: HEIFPicture.ColourModel?,
    isSmoothed: Bool = true, threads: Int = 1
  ) {
    guard let decoder = de265_new_decoder() else { return nil }
    if !isSmoothed {
      de265_set_parameter_bool(decoder, DE265_DECODER_PARAM_DISABLE_DEBLOCKING, 1)
      de265_set_parameter_bool(decoder, DE265_DECODER_PARAM_DISABLE_SAO, 1)
    }
    if threads > 1 { _ = de265_start_worker_threads(decoder, CInt(threads)) }
    guard (try? Self.push(tile, to: decoder)) == true, let picture = Self.picture(of: decoder),
      let image = Self.planes(of: picture, model: model), image.luma.size == size
    else {
      de265_free_decoder(decoder)
      return nil
    }
    self.decoder = decoder
    self.image = image
  }

  deinit { de265_free_decoder(decoder) }

  /// Gives the decoder all parts of an image (ISO/IEC 14496-15, 8.3.2.1.2).
  ///
  /// - Returns: Whether they are of one picture.
  private static func push(
    _ tile: HEIFPicture.Tile, to decoder: UnsafeMutableRawPointer
  ) throws(EndOfBytes) -> Bool {
    var parameters = tile.configuration
    let lengthBytes = try parameters.number(at: 21, width: 1) & 3 + 1
    _ = try parameters.take(22)
    for _ in 0..<(try parameters.number(1)) {
      _ = try parameters.byte()
      for _ in 0..<(try parameters.number(2)) {
        let unit = try parameters.take(try parameters.number(2))
        guard push(unit, to: decoder) else { return false }
      }
    }
    var pictures = 0
    var units = ByteReader(tile.data)
    while !units.isAtEnd {
      let unit = try units.take(try units.number(lengthBytes))
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
    let unit = ByteReader(unit)
    let type = try unit.number(at: 0, width: 1) >> 1 & 0x3f
    guard type < 32 else { return false }
    return try unit.number(at: 2, width: 1) & 0x80 != 0
  }

  /// Decodes what was pushed.
  private static func picture(of decoder: UnsafeMutableRawPointer) -> OpaquePointer? {
    var more: CInt = 1
    while more != 0 {
      guard de265_decode(decoder, &more) == DE265_OK else { return nil }
      guard let picture = de265_get_next_picture(decoder) else { continue }
      // libheif ignores warnings; what they make of the image is its to decide.
      return de265_get_warning(decoder) == DE265_OK ? picture : nil
    }
    return nil
  }

  private static func planes(
    of picture: OpaquePointer, model: HEIFPicture.ColourModel?
  ) -> PlanarImage? {
    let model =
      model
      ?? HEIFPicture.ColourModel(
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
