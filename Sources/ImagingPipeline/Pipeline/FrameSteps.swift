// FrameSteps: what happens to each frame between decoding and encoding, in the contract's order of work.

import CVips
import Model

/// The steps from a loaded frame to one that can be encoded.
///
/// The turn comes after the resize: on the small image it costs next to nothing, and only that one has to be in
/// memory. The image is the same as if it had been turned first, because the resize is told the sides as they are
/// stored.
struct FrameSteps {
  let header: SourceHeader
  let part: SourceRegion
  /// Where the part lies in a loaded frame.
  let window: Window
  let geometry: Geometry
  let transform: Transform
  let output: Output
  /// Where the image lies on the canvas, once that is known. What entropy or attention finds in an animation's first
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
    var image = try resized(try frame.readyForResize())
    image = try image.inSRGB(from: header.codePoints)
    image = try part.orientation.apply(to: image)
    image = try cut(image)
    image = try transform.effects.apply(to: image, density: geometry.density)
    if !output.keepsAlpha && image.hasAlpha { image = try flattened(image) }
    return geometry.isPadded ? try padded(image) : image
  }

  /// Takes the part that is used, in the size that it will have.
  private func resized(_ image: consuming Image) throws(ImageError) -> Image {
    let stored = part.orientation.swapsSides ? geometry.image.turned : geometry.image
    guard header.format == .svg else { return try image.resized(to: stored, showing: window) }
    let area = window.rounded(of: image.size)
    if area.size != image.size { image = try image.cut(x: area.x, y: area.y, area.size) }
    return try image.trimmed(to: stored).resized(to: stored)
  }

  /// Cuts off what sticks out of the canvas.
  private mutating func cut(_ image: consuming Image) throws(ImageError) -> Image {
    guard geometry.isCut else { return image }
    let size = PixelSize(
      width: min(geometry.canvas.width, geometry.image.width),
      height: min(geometry.canvas.height, geometry.image.height))
    if place == nil, transform.focalPoint == nil, let interest = transform.position.interest {
      // It is looked at as a whole before a part of it is read.
      image = try image.inMemory()
      place = try image.made("smart crop") {
        pictor_vips_smartcrop($0, $1, CInt(size.width), CInt(size.height), interest)
      }.origin
    }
    let offset = place ?? geometry.offset
    return try image.cut(x: max(0, -offset.x), y: max(0, -offset.y), size)
  }

  /// Lays it on the background. An alpha of the background itself counts for nothing where the output has none.
  private func flattened(_ image: consuming Image) throws(ImageError) -> Image {
    let image = try image.able(toShow: transform.background)
    return try image.flattened(on: image.components(of: transform.background))
  }

  /// Fills the canvas around it with the background.
  private func padded(_ image: consuming Image) throws(ImageError) -> Image {
    var image = try image.able(toShow: transform.background)
    if output.keepsAlpha && !image.hasAlpha && transform.background.alpha < 255 {
      image = try image.withOpaqueAlpha()
    }
    var background = image.components(of: transform.background)
    if image.hasAlpha { background.append(Double(transform.background.alpha)) }
    let offset = geometry.offset
    return try image.placed(
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
