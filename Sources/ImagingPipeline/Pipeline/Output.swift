// Output: which format a result gets, and how good it is to be.

import Model

/// The encoder of one result.
struct Output {
  /// Format of the bytes.
  let format: ImageFormat
  /// Quality, 1–100; `nil` for what loses nothing by it: PNG, GIF and TIFF.
  let quality: Int?
  /// How much work the encoder takes.
  let efforts: EncoderEfforts
  /// Whether JPEG, PNG and GIF are made to draw coarsely first.
  let isInterlaced: Bool
  /// Whether transparency survives.
  let keepsAlpha: Bool

  /// Chooses the format: the one asked for, else the first that the client takes and that can hold the result, else GIF
  /// for an animation, PNG where pixels have an alpha, JPEG for the rest (and PNG where a side is too long for a JPEG).
  ///
  /// - Throws: `ImageError.invalidParameter` when the result does not fit into the format asked for, or that cannot be
  ///   written here.
  init(
    for transform: Transform, header: SourceHeader, frames: Int, geometry: Geometry,
    efforts: EncoderEfforts
  ) throws(ImageError) {
    let size = geometry.canvas
    let hasAlpha =
      header.hasAlpha || transform.effects.radius != nil
      || (geometry.isPadded && transform.background.alpha < 255)
    if let format = transform.format {
      guard let limit = format.longestSide, format.isEncodable else {
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
      let candidates = transform.accepted + [hasAlpha ? .png : .jpeg, .png]
      let suited = candidates.first { $0.suits(frames: frames, hasAlpha: hasAlpha, size: size) }
      format = suited ?? (frames > 1 ? .gif : .png)
    }
    keepsAlpha = format.holdsAlpha
    isInterlaced = transform.progressive
    self.efforts = efforts
    quality = transform.qualities[format].map { transform.quality ?? $0 }
  }
}
