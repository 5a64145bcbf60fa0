// OverlayMessage: what goes over to a worker with the second image of a job.

import Model

/// A job's watermark, whose descriptor goes along behind the source's.
public struct OverlayMessage: Hashable, Sendable {
  /// Where the image starts in its file.
  public let offset: Int
  /// How many bytes it has.
  public let count: Int
  /// Pixels per point of it, from its name: 1, 2 or 3.
  public let density: Int
  /// How it lies on the result.
  public let placement: WatermarkPlacement

  /// A watermark.
  public init(offset: Int, count: Int, density: Int, placement: WatermarkPlacement) {
    (self.offset, self.count) = (offset, count)
    (self.density, self.placement) = (density, placement)
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
    // As with the source: neither of the two, nor their sum, overflows.
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

  /// Above 0, at most 1.
  private mutating func share(_ name: String) throws(WireError) -> Double {
    try double(name, in: .leastNonzeroMagnitude...WatermarkPlacement.shareRange.upperBound)
  }
}
