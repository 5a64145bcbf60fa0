// ThumborGeometry: puts sizes, parts and places into Pictor's terms.

import Core

/// thumbor crops, resizes, flips and turns. Pictor turns and flips first, so places, offsets and
/// sides are those of the turned image.
extension ThumborDraft {
  /// Writes what the geometry needs.
  mutating func writeGeometry() throws(OptionFault) {
    let quarters = (quartersBefore + turn.quarters) % 4
    if quarters > 0 { translation["rotate"] = "\(quarters * 90)" }
    translation["flip"] = turn.flipAfter
    if crop != nil, translation["trim"] != nil {
      note("trim", .near("trims what AxB:CxD keeps, not the source"))
    }
    writeCrop()
    let isBox = try writeSides()
    if isBox { try writeFit() }
    if let padding {
      let (left, top, right, bottom) = (padding[0], padding[1], padding[2], padding[3])
      var edges = [top, right, bottom, left]
      for _ in 0..<turn.quarters { edges.insert(edges.removeLast(), at: 0) }
      translation["pad"] = edges.map(String.init).joined(separator: ",")
    }
    if dialect == .imagor, let fill { translation["background"] = fill }
    if ["jpeg", "png", "gif", "tiff"].contains(translation["format"]) {
      translation["lossless"] = nil
    }
    // Neither peer shows anything behind a JPEG's transparent parts.
    if translation["format"] == "jpeg", translation["background"] == nil {
      translation["background"] = "000000"
    }
  }

  private mutating func writeCrop() {
    guard let (from, to) = crop else { return }
    let text = from.isShare ? Argument.share : Argument.written
    let size = (text(to.x - from.x), text(to.y - from.y))
    guard !turn.isNone else {
      translation["crop"] = [text(from.x), text(from.y), size.0, size.1].joined(separator: ",")
      return
    }
    // Where the left upper corner goes, the offsets from it go too.
    let corner = turn.moved(0, 0, end: 2)
    let values =
      turn.swapsSides
      ? [size.1, size.0, Self.name(corner), text(from.y), text(from.x)]
      : [size.0, size.1, Self.name(corner), text(from.x), text(from.y)]
    translation["crop"] = values.joined(separator: ",")
  }

  /// Writes `w` and `h`. Returns whether the image is fitted into a box.
  private mutating func writeSides() throws(OptionFault) -> Bool {
    // A side that is the source's needs no limit, unless the other side has one.
    let isOwn = { (side: Side) in side == .free || side == .original }
    if isOwn(width) && isOwn(height) {
      guard proportion < 1 else { return false }
      (width, height) = (.original, .original)
    }
    let (across, down) = turn.swapsSides ? (height, width) : (width, height)
    translation["w"] = try text(of: across)
    translation["h"] = try text(of: down)
    return true
  }

  private func text(of side: Side) throws(OptionFault) -> String? {
    switch side {
    case .free: return nil
    case .original: return Argument.written(max(proportion * 100, 0.01)) + "%"
    case .pixels(let pixels):
      let pixels = max(1, Int(Double(pixels) * proportion))
      guard Sizing.sideRange.contains(pixels) else {
        throw .unsupported("ExF: a side has at most \(Sizing.sideRange.upperBound) pixels")
      }
      return "\(pixels)"
    }
  }

  private mutating func writeFit() throws(OptionFault) {
    let hasBoth = width != .free && height != .free
    if hasBoth {
      if isStretched || (width == .original && height == .original) {
        translation["fit"] = "fill"
      } else if isFitIn {
        translation["fit"] = isFull ? "outside" : fill == nil ? "inside" : "contain"
      } else {
        translation["fit"] = "cover"
        try writePosition()
      }
    }
    if translation["fit"] == "contain" {
      if isTurnedBeforeFill, dialect == .thumbor, width != height {
        throw .unsupported("fill: comes after rotate, and the box is no square")
      }
      translation["background"] = fill
      if fillsBehind { translation["flatten"] = "1" }
    }
    if isAdaptive, isFitIn, case .pixels(let across) = width, case .pixels(let down) = height,
      across != down
    {
      translation["swap"] = "1"
    }
    if !keepsSize, !isFitIn || isFull || isStretched || enlarges,
      proportion == 1 || width != .original
    {
      translation["enlarge"] = "1"
    }
  }

  /// Writes which part `cover` keeps.
  private mutating func writePosition() throws(OptionFault) {
    if let (sum, weight) = focus, weight > 0 {
      var (x, y) = (sum.x / weight, sum.y / weight)
      if sum.isShare, let (from, to) = crop {
        guard from.isShare else { throw .unsupported("focal: in shares, and AxB:CxD in pixels") }
        (x, y) = ((x - from.x) / (to.x - from.x), (y - from.y) / (to.y - from.y))
      }
      if sum.isShare {
        (x, y) = turn.moved(min(max(x, 0), 1), min(max(y, 0), 1), end: 1)
        translation["position"] = Argument.written(x) + "," + Argument.written(y)
      } else {
        guard turn.isNone else {
          throw .unsupported("focal: in pixels, and the image is flipped or turned")
        }
        translation["position"] = "\(Int(x.rounded()))px,\(Int(y.rounded()))px"
      }
    } else if isSmart {
      translation["position"] = "attention"
    } else if align != (1, 1) {
      translation["position"] = Self.name(turn.moved(align.x, align.y, end: 2))
    }
  }

  /// Returns the name of a place: 0 is the left or upper edge, 1 the middle, 2 the other edge.
  static func name(_ place: (x: Int, y: Int)) -> String {
    let names = [
      "left-top", "top", "right-top", "left", "center", "right", "left-bottom", "bottom",
      "right-bottom",
    ]
    let index = place.y * 3 + place.x
    return names.indices.contains(index) ? names[index] : names[4]
  }
}
