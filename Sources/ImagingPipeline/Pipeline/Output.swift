// Output: chooses the format and quality of a result.

import ImagingWire
import Model

/// The output format and encoder settings of one result.
struct Output {
  /// The format of the encoded bytes.
  let format: ImageFormat
  /// The quality, 1–100; `nil` for the lossless formats PNG, GIF and TIFF.
  let quality: Int?
  /// How much work the encoder takes.
  let efforts: EncoderEfforts
  /// The most threads of the encoder.
  let threads: Int
  /// Whether JPEG, PNG and GIF are made to draw coarsely first.
  let isInterlaced: Bool
  /// Whether a PNG has at most 256 colours, because its source has a palette.
  let reducesColours: Bool
  /// Whether the format keeps transparency.
  let keepsAlpha: Bool

  /// Chooses the format, in this order:
  /// 1. The requested format.
  /// 2. The first format that the client accepts and that can hold the result.
  /// 3. GIF for an animation, PNG for pixels with alpha, otherwise JPEG (PNG if a side is too long
  ///    for JPEG).
  ///
  /// - Throws: `ImageError.invalidParameter` when the result does not fit into the format asked for, or that cannot be
  ///   written here.
  init(
    for transform: Transform, header: SourceHeader, frames: Int, geometry: Geometry,
    limits: ImagingLimits
  ) throws(ImageError) {
    let size = geometry.canvas
    let hasAlpha =
      header.hasAlpha || transform.effects.radius != nil
      || (geometry.isPadded && transform.output.background.alpha < 255)
    if let format = transform.output.format {
      guard let limit = format.traits.longestSide, format.isEncodable else {
        throw .invalidParameter(
          name: "format", value: format.rawValue,
          allowed: ImageFormat.outputs.filter(\.isEncodable).map(\.rawValue)
            .joined(separator: ", "))
      }
      guard max(size.width, size.height) <= limit else {
        throw .invalidParameter(
          name: "format", value: format.rawValue,
          allowed: "a side has at most \(limit) pixels, the result would be \(size)")
      }
      self.format = format
    } else {
      let candidates = transform.output.accepted + [hasAlpha ? .png : .jpeg, .png]
      let suited = candidates.first { $0.suits(frames: frames, hasAlpha: hasAlpha, size: size) }
      format = suited ?? (frames > 1 ? .gif : .png)
    }
    keepsAlpha = format.traits.holdsAlpha
    isInterlaced = transform.output.isProgressive
    efforts = limits.efforts
    threads = limits.maximumThreads
    reducesColours =
      format == .png && header.hasPalette && limits.keepsPalettes && ImageFormat.gif.isEncodable
      && size.pixels <= PNGEncoder.maximumPixels
    quality = transform.output.qualities[format].map { transform.output.quality ?? $0 }
  }
}
