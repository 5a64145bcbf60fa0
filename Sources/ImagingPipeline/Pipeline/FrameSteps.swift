// FrameSteps: the processing steps of one frame between decoding and encoding.

import CVips
import Model

/// The steps from a decoded frame to one that can be encoded.
///
/// The orientation is applied after the resize, because turning the small image is cheap and only
/// that image must be in memory. The result equals that of turning first: the resize works with the
/// sides as stored.
struct FrameSteps {
  let header: SourceHeader
  let part: SourceRegion
  /// The source region in the coordinates of a loaded frame.
  let window: Window
  let geometry: Geometry
  let transform: Transform
  let output: Output
  /// The most threads that resize.
  let threads: Int
  /// The smart crop's position, once computed. The position found in the first frame of an
  /// animation applies to all frames, so that the crop does not jump.
  private(set) var place: (x: Int, y: Int)?

  /// Applies all steps to one frame.
  mutating func apply(to frame: consuming Image) throws(ImageError) -> Image {
    var image = try resized(try frame.readyForResize())
    image = try image.inSRGB(from: header.codePoints)
    image = try part.orientation.apply(to: image)
    image = try cut(image)
    image = try transform.effects.apply(to: image, density: geometry.density)
    if !output.keepsAlpha && image.hasAlpha { image = try flattened(image) }
    return geometry.isPadded ? try padded(image) : image
  }

  /// Crops the frame to the source region and resizes it to its final size.
  private func resized(_ image: consuming Image) throws(ImageError) -> Image {
    let stored = part.orientation.swapsSides ? geometry.image.turned : geometry.image
    guard header.format == .svg else {
      return try image.resized(to: stored, showing: window, threads: threads)
    }
    let area = window.rounded(of: image.size)
    if area.size != image.size { image = try image.cut(x: area.x, y: area.y, area.size) }
    return try image.trimmed(to: stored).resized(to: stored)
  }

  /// Cuts off the parts that lie outside the canvas.
  private mutating func cut(_ image: consuming Image) throws(ImageError) -> Image {
    guard geometry.isCut else { return image }
    let size = PixelSize(
      width: min(geometry.canvas.width, geometry.image.width),
      height: min(geometry.canvas.height, geometry.image.height))
    if place == nil, transform.sizing.focalPoint == nil,
      let interest = transform.sizing.position.interest
    {
      // Smart crop reads the whole image before the crop is read from it.
      image = try image.inMemory()
      place = try image.made("smart crop") {
        pictor_vips_smartcrop($0, $1, CInt(size.width), CInt(size.height), interest)
      }.origin
    }
    let offset = place ?? geometry.offset
    return try image.cut(x: max(0, -offset.x), y: max(0, -offset.y), size)
  }

  /// Flattens the image onto the background colour. The background's own alpha is ignored because
  /// the output has none.
  private func flattened(_ image: consuming Image) throws(ImageError) -> Image {
    let image = try image.able(toShow: transform.output.background)
    return try image.flattened(on: image.components(of: transform.output.background))
  }

  /// Pads the image to the canvas with the background colour.
  private func padded(_ image: consuming Image) throws(ImageError) -> Image {
    var image = try image.able(toShow: transform.output.background)
    if output.keepsAlpha && !image.hasAlpha && transform.output.background.alpha < 255 {
      image = try image.withOpaqueAlpha()
    }
    var background = image.components(of: transform.output.background)
    if image.hasAlpha { background.append(Double(transform.output.background.alpha)) }
    let offset = geometry.offset
    return try image.placed(
      x: max(0, offset.x), y: max(0, offset.y), on: geometry.canvas, background: background)
  }
}

extension Position {
  /// The libvips interest strategy of a smart crop; `nil` for a fixed position.
  fileprivate var interest: VipsInteresting? {
    switch self {
    case .entropy: VIPS_INTERESTING_ENTROPY
    case .attention: VIPS_INTERESTING_ATTENTION
    default: nil
    }
  }
}
