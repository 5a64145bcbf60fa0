// Loader+Planes: reduces a HEIC, AVIF or WebP before it is converted to RGB.

import Model

extension Loader {
  /// The least reduction of a WebP or HEIC without the filter of its blocks' edges. Below it, the
  /// edges cost bytes and likeness: a WebP by 2.25 has SSIM 0.9695 without it, 0.9707 with it.
  private static let leastUnsmoothed = 4.0

  /// Decodes a source to its planes and reduces these to the result's size.
  ///
  /// - Returns: The reduced region; `nil` where libvips decodes.
  func reducedPlanes(for geometry: Geometry, frames: Int) throws(ImageError) -> Image? {
    let target = storedTarget(for: geometry)
    let size = part.stored.size
    guard frames == 1, header.page == nil, !header.hasAlpha, target != size,
      target.width <= size.width, target.height <= size.height,
      target.pixels <= Image.maximumReducedPixels
    else { return nil }
    let isSmoothed = factor(for: geometry) < Self.leastUnsmoothed
    // A second try, if dav1d or libwebp can start no threads: the result must not depend on that.
    for threads in threads > 1 ? [threads, 1] : [1] {
      switch header.format {
      case .heic where !needsAllBits, .avif where !needsAllBits:
        guard let image = HEIFImage(of: source) else { return nil }
        let reduced = try image.reduced(
          to: target, showing: part.stored, of: header.size, profile: header.profile,
          decoding: .init(isSmoothed: isSmoothed, threads: threads))
        if reduced == nil, image.codec == .av1 { continue }
        return reduced
      case .webp where !header.isAnimation:
        guard
          let planes = WebPPlanes(
            source, size: header.size, isSmoothed: isSmoothed, isThreaded: threads > 1)
        else { continue }
        return try planes.image.reduced(
          to: target, showing: Window(part.stored, times: (1, 1)), profile: header.profile,
          threads: threads)
      default: return nil
      }
    }
    return nil
  }

  /// Whether colours that are converted after the reduction need all bits of a deep source.
  private var needsAllBits: Bool {
    header.pixelBytes > 4 && (header.codePoints != nil || !header.profile.isEmpty)
  }
}
