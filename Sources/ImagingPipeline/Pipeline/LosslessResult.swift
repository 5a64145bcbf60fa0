// LosslessResult: what can be made of a source without decoding it, for a request that changes no pixel.

import Model

/// Whether a request wants the source's pixels as they are, and the source's own bytes with as little changed as possible.
struct LosslessResult {
  private let source: UnsafeRawBufferPointer
  private let header: SourceHeader
  private let orientation: Orientation
  private let geometry: Geometry
  private let output: Output
  /// Whether the result shows each of the source's pixels, and no others.
  let keepsPixels: Bool
  /// Whether the source's format will do.
  private let isTaken: Bool

  init(
    of source: UnsafeRawBufferPointer, _ header: SourceHeader, part: SourceRegion, frames: Int,
    geometry: Geometry, transform: Transform, output: Output
  ) {
    self.source = source
    self.header = header
    self.output = output
    self.geometry = geometry
    orientation = part.orientation
    keepsPixels =
      transform.keepsPixels && geometry.image == part.size && geometry.canvas == part.size
      && geometry.scaledDownFrom == nil && (header.pages == 1 || frames == header.pages)
    isTaken = transform.stripsMetadata && transform.takes(header.format)
  }

  /// The source's bytes without metadata, upright; `nil` where pixels would have to be computed.
  ///
  /// A JPEG is turned where its sides are multiples of its blocks, and made progressive where that is asked for, or where
  /// it would be larger than the source otherwise.
  func bytes() -> [UInt8]? {
    guard keepsPixels, isTaken, header.profile.isEmpty, header.codePoints == nil else { return nil }
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

  /// - Parameter isProgressive: Also where the source is not.
  private func upright(isProgressive: Bool) -> [UInt8]? {
    guard let turn = JPEGTurn(source) else { return nil }
    let isProgressive = isProgressive || turn.isProgressive
    return turn.turned(by: orientation, isProgressive: isProgressive)
  }

  /// Whether these bytes are the answer: no more than what was encoded has, or all of the quality where that gave way to
  /// `maxbytes`.
  func isBetter(_ bytes: [UInt8], than encoded: borrowing Encoded, within limit: Int?) -> Bool {
    guard bytes.count <= limit ?? .max else { return false }
    let hasGivenWay =
      encoded.size != geometry.canvas || encoded.quality ?? .max < output.quality ?? 0
    return bytes.count <= encoded.bytes.count || hasGivenWay
  }

  /// The most bytes that a result in place of the source may have, where its quality is open: the source's.
  func mostBytes(_ transform: Transform) -> Int? {
    let isOpen = transform.quality == nil && transform.maxBytes == nil && transform.stripsMetadata
    let isLossy = output.format == .jpeg || output.format == .webp
    return keepsPixels && isOpen && isLossy && output.format == header.format ? source.count : nil
  }
}
