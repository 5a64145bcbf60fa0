// LosslessResult: produces a result without decoding if a request changes no pixel.

import Core

/// Decides whether a request keeps the source's pixels, and returns the source's own bytes with
/// minimal changes.
struct LosslessResult {
  let source: UnsafeRawBufferPointer
  let header: SourceHeader
  let part: SourceRegion
  /// The frames of the result.
  let frames: Int
  let geometry: Geometry
  let transform: Transform
  let output: Output

  private var orientation: Orientation { part.orientation }

  /// Whether the result shows every pixel of the source and no others.
  private var keepsPixels: Bool {
    transform.keepsPixels && geometry.image == part.size && geometry.frame == part.size
      && geometry.canvas == part.size
      && geometry.scaledDownFrom == nil && (header.pages == 1 || frames == header.pages)
  }

  /// Returns the source's bytes, upright and without metadata; `nil` if pixels would have to be
  /// computed.
  ///
  /// A JPEG is rotated losslessly if its sides are multiples of its block size. The result is
  /// progressive on request, or if a baseline result would be larger than the source.
  func bytes() -> [UInt8]? {
    guard keepsPixels, transform.output.stripsMetadata, transform.takes(header.format),
      header.profile.isEmpty, header.codePoints == nil,
      transform.output.colours == nil, transform.output.chroma == nil,
      !transform.output.flattens || !header.hasAlpha
    else { return nil }
    guard header.format == .jpeg else {
      return orientation == .up ? Stripping.stripped(source, as: header.format) : nil
    }
    guard orientation == .up else {
      guard let turned = upright(isProgressive: output.isInterlaced) else { return nil }
      guard turned.count > source.count, !output.isInterlaced else { return turned }
      return upright(isProgressive: true)
    }
    let stripped = Stripping.stripped(source, as: .jpeg)
    guard output.isInterlaced, stripped != nil, let turn = JPEGTurn(source), !turn.isProgressive
    else { return stripped }
    return turn.turned(by: .up, isProgressive: true) ?? stripped
  }

  /// Rotates a JPEG losslessly; `nil` if that is not possible.
  ///
  /// - Parameter isProgressive: Whether the result is progressive even if the source is not.
  private func upright(isProgressive: Bool) -> [UInt8]? {
    guard let turn = JPEGTurn(source) else { return nil }
    let isProgressive = isProgressive || turn.isProgressive
    return turn.turned(by: orientation, isProgressive: isProgressive)
  }

  /// Returns whether `bytes` replace the encoded result. They must fit in `limit`, and either be no
  /// larger, or no larger than the source while the encoding saves too little
  /// (`ImageFormat.isWorth`), or `maxbytes` has forced the encoder to reduce quality or size.
  func isBetter(_ bytes: [UInt8], than encoded: borrowing Encoded, within limit: Int?) -> Bool {
    guard bytes.count <= limit ?? .max else { return false }
    let hasGivenWay =
      encoded.size != geometry.canvas || encoded.quality ?? .max < output.quality ?? 0
    let isSaved = output.format.isWorth(encoding: encoded.bytes.count, inPlaceOf: bytes.count)
    return bytes.count <= encoded.bytes.count || (!isSaved && bytes.count <= source.count)
      || hasGivenWay
  }

  /// The maximum bytes of a result that could replace the source, if its quality is open: the
  /// source's byte count.
  var maximumBytes: Int? {
    let isOpen =
      transform.output.quality == nil && transform.output.maxBytes == nil
      && transform.output.stripsMetadata
    let isLossy = output.format == .jpeg || output.format == .webp
    return keepsPixels && isOpen && isLossy && output.format == header.format ? source.count : nil
  }
}
