// OutputFormat: which formats a result may have.

import Model

extension ImageFormat {
  /// Whether this build can encode the format. libvips reads AVIFs and JPEG XLs, and
  /// encodes some AVIFs, with modules, which this call loads: results are read again (`EncodedCheck`).
  var isEncodable: Bool {
    guard traits.longestSide != nil else { return false }
    do throws(ImageError) {
      try Loader.loadModule(of: self)
      return true
    } catch { return false }
  }

  /// Whether a result may have this format without an explicit request.
  func suits(frames: Int, hasAlpha: Bool, size: PixelSize) -> Bool {
    let traits = traits
    guard let longestSide = traits.longestSide, size.longestSide <= longestSide,
      frames == 1 || traits.holdsFrames, !hasAlpha || traits.holdsAlpha
    else { return false }
    return (!traits.encodesSlowly || size.pixels <= Self.maximumSlowPixels) && isEncodable
  }

  /// The maximum pixels of an AVIF or JPEG XL without an explicit request. 16 megapixels of AVIF
  /// take 2.3 s of processor time and 329 MB; 4 of WebP take 0.23 s and 20 MB.
  private static let maximumSlowPixels = 4_000_000
}
