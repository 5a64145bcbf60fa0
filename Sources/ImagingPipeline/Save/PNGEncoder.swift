// PNGEncoder: encodes PNGs, with a palette where that is fewer bytes.

import CVips
import Model

/// Encodes PNGs with all samples and, where few colours are enough, with a palette, and takes the
/// smaller one. Photographs of sources with a palette take 0.4 of the bytes.
struct PNGEncoder {
  /// zlib's level.
  let effort: Int
  /// libimagequant's effort.
  let effortOfPalette: Int
  /// Whether all rows come in seven passes.
  let isInterlaced: Bool
  /// Whether an image with more colours than a palette holds is reduced to a palette.
  let reducesColours: Bool

  /// Larger images have no palette: it takes libimagequant four times as long as the PNG.
  static let maximumPixels = 4_000_000
  /// The least level of zlib for indices, which have a third or a quarter of the bytes of samples. On photographs it makes
  /// 1 % fewer bytes than level 4.
  private static let leastEffortOfIndices = 6
  /// The part of the bytes that a reduced image may take, in tenths. What saves less is not worth the colours.
  private static let tenthsWorth = 9

  /// Encodes an image in sRGB or grey.
  func encode(_ image: borrowing Image) throws(ImageError) -> GLibBytes {
    let all = try withAllColours(image)
    guard image.size.pixels <= Self.maximumPixels, image.bands > 2 else { return all }
    if let palette = PNGPalette(of: image) {
      let indexed = all.withUnsafeBytes { palette.indexed($0, of: image) }
      guard let indexed, indexed.count < all.count else { return all }
      return try GLibBytes(copying: indexed)
    }
    guard reducesColours else { return all }
    let reduced = try withReducedColours(image)
    return 10 * reduced.count < Self.tenthsWorth * all.count ? reduced : all
  }

  private func withAllColours(_ image: borrowing Image) throws(ImageError) -> GLibBytes {
    let strip = CInt(image.hasMetadata ? 0 : 1)
    return try image.withVipsImage { image throws(ImageError) in
      try GLibBytes("encode") { bytes, count in
        pictor_vips_pngsave(
          image, bytes, count, CInt(effort), VIPS_FOREIGN_PNG_FILTER_ALL, isInterlaced ? 1 : 0,
          strip)
      }
    }
  }

  private func withReducedColours(_ image: borrowing Image) throws(ImageError) -> GLibBytes {
    let strip = CInt(image.hasMetadata ? 0 : 1)
    return try image.withVipsImage { image throws(ImageError) in
      try GLibBytes("encode") { bytes, count in
        pictor_vips_pngsave_palette(
          image, bytes, count, CInt(max(effort, Self.leastEffortOfIndices)), CInt(effortOfPalette),
          Output.dither,
          isInterlaced ? 1 : 0, strip)
      }
    }
  }
}
