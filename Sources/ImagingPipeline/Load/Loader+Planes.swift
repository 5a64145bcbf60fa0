// Loader+Planes: reduces an AVIF before it is converted to RGB.

import Model

extension Loader {
  /// Decodes a source to its planes and reduces these to the result's size.
  ///
  /// - Returns: The reduced region; `nil` where libvips decodes.
  func reducedPlanes(for geometry: Geometry, frames: Int) throws(ImageError) -> Image? {
    let target = storedTarget(for: geometry)
    let window = part.stored
    guard frames == 1, isMadeOfPlanes, target != window.size,
      target.width <= window.size.width, target.height <= window.size.height,
      target.pixels <= Image.maximumReducedPixels,
      let planes = AV1Planes(source, size: header.size)
    else { return nil }
    return try planes.image.reduced(
      to: target, showing: Window(window, times: (1, 1)), profile: header.profile)
  }

  /// Whether the source may be decoded to planes, as far as the header tells.
  private var isMadeOfPlanes: Bool {
    guard header.format == .avif, header.page == nil, !header.hasAlpha else { return false }
    // Colours that are converted after the reduction need all bits of a deep source.
    let isDeep = header.pixelBytes > 4
    return !isDeep || (header.codePoints == nil && header.profile.isEmpty)
  }
}
