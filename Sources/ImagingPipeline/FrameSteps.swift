// FrameSteps: what happens to each frame between decoding and encoding, in the contract's order of work.

import CVips
import Model

/// The steps from a loaded frame to one that can be encoded.
///
/// The turn comes after the resize: on the small picture it costs next to nothing, and only that one has to be in
/// memory. The picture is the same as if it had been turned first, because the resize is told the sides as they are
/// stored.
struct FrameSteps {
  let header: SourceHeader
  let part: SourceRegion
  /// Where the part lies in a loaded frame.
  let window: Window
  let geometry: Geometry
  let transform: Transform
  let output: Output
  /// Where the picture lies on the canvas, once that is known. What entropy or attention finds in an animation's first
  /// frame holds for all: a window that jumps is no animation.
  private var place: (x: Int, y: Int)?

  init(
    header: SourceHeader, part: SourceRegion, window: Window, geometry: Geometry,
    transform: Transform, output: Output
  ) {
    self.header = header
    self.part = part
    self.window = window
    self.geometry = geometry
    self.transform = transform
    self.output = output
  }

  /// Runs the steps.
  mutating func apply(to frame: consuming Image) throws(ImageError) -> Image {
    var picture = try resized(try frame.readyForResize())
    picture = try picture.inSRGB(from: header.codePoints)
    picture = try part.orientation.apply(to: picture)
    picture = try cut(picture)
    picture = try transform.effects.apply(to: picture, density: geometry.density)
    if !output.keepsAlpha && picture.hasAlpha { picture = try flattened(picture) }
    return geometry.isPadded ? try padded(picture) : picture
  }

  /// Takes the part that is used, in the size that it will have.
  private func resized(_ picture: consuming Image) throws(ImageError) -> Image {
    let stored = part.orientation.swapsSides ? geometry.picture.turned : geometry.picture
    guard header.format == .svg else { return try picture.resized(to: stored, showing: window) }
    let area = window.rounded(of: picture.size)
    if area.size != picture.size { picture = try picture.cut(x: area.x, y: area.y, area.size) }
    return try picture.trimmed(to: stored).resized(to: stored)
  }

  /// Cuts off what sticks out of the canvas.
  private mutating func cut(_ picture: consuming Image) throws(ImageError) -> Image {
    guard geometry.isCut else { return picture }
    let size = PixelSize(
      width: min(geometry.canvas.width, geometry.picture.width),
      height: min(geometry.canvas.height, geometry.picture.height))
    if place == nil, transform.focalPoint == nil, let interest = transform.position.interest {
      // It is looked at as a whole before a part of it is read.
      picture = try picture.inMemory()
      place = try picture.made("smart crop") {
        pictor_vips_smartcrop($0, $1, CInt(size.width), CInt(size.height), interest)
      }.origin
    }
    let offset = place ?? geometry.offset
    return try picture.cut(x: max(0, -offset.x), y: max(0, -offset.y), size)
  }

  /// Lays it on the background. An alpha of the background itself counts for nothing where the output has none.
  private func flattened(_ picture: consuming Image) throws(ImageError) -> Image {
    let picture = try picture.able(toShow: transform.background)
    return try picture.flattened(on: picture.components(of: transform.background))
  }

  /// Fills the canvas around it with the background.
  private func padded(_ picture: consuming Image) throws(ImageError) -> Image {
    var picture = try picture.able(toShow: transform.background)
    if output.keepsAlpha && !picture.hasAlpha && transform.background.alpha < 255 {
      picture = try picture.withOpaqueAlpha()
    }
    var background = picture.components(of: transform.background)
    if picture.hasAlpha { background.append(Double(transform.background.alpha)) }
    let offset = geometry.offset
    return try picture.placed(
      x: max(0, offset.x), y: max(0, offset.y), on: geometry.canvas, background: background)
  }
}

extension Position {
  /// libvips's name for what decides the place; `nil` where the place is given.
  fileprivate var interest: VipsInteresting? {
    switch self {
    case .entropy: VIPS_INTERESTING_ENTROPY
    case .attention: VIPS_INTERESTING_ATTENTION
    default: nil
    }
  }
}
