// OverlayMessage: the watermark part of a job message.

import Model

/// A job's watermark. Its descriptor is passed after the source's.
public struct OverlayMessage: Hashable, Sendable {
  /// Offset of the image in its file.
  public let offset: Int
  /// Length of the image in bytes.
  public let count: Int
  /// Pixels per point of the image, from its name: 1, 2 or 3.
  public let density: Int
  /// Placement on the result.
  public let placement: WatermarkPlacement

  /// Creates a watermark.
  public init(offset: Int, count: Int, density: Int, placement: WatermarkPlacement) {
    self.offset = offset
    self.count = count
    self.density = density
    self.placement = placement
  }
}

extension WireWriter {
  mutating func put(_ overlay: OverlayMessage) {
    put(Int64(overlay.offset))
    put(Int64(overlay.count))
    put(Int64(overlay.density))
    put(overlay.placement.position)
    put(overlay.placement.scale) { $0.put($1) }
    put(overlay.placement.opacity)
    put(overlay.placement.repeats)
  }
}

extension WireReader {
  mutating func overlay() throws(WireError) -> OverlayMessage {
    // The ranges ensure that the sum of both does not overflow.
    let offset = try integer("overlay's offset", in: 0...Int.max / 2)
    let count = try integer("overlay's count", in: 0...Int.max / 2)
    let density = try integer("overlay's density", in: 1...3)
    var placement = WatermarkPlacement()
    placement.position = try value("overlay's position", of: Position.self)
    placement.scale = try optional("overlay's scale") { reader throws(WireError) in
      try reader.share("overlay's scale")
    }
    placement.opacity = try share("overlay's opacity")
    placement.repeats = try flag("overlay's repeats")
    return OverlayMessage(offset: offset, count: count, density: density, placement: placement)
  }

  /// Reads a share above 0, at most 1.
  private mutating func share(_ name: String) throws(WireError) -> Double {
    try double(name, in: .leastNonzeroMagnitude...WatermarkPlacement.shareRange.upperBound)
  }
}
