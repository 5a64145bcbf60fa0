// OutputFormat: what each output format can hold.

import Model

extension ImageFormat {
  /// The most pixels a side may have; `nil` for what is no output.
  var longestSide: Int? {
    switch self {
    case .jpeg: 65_500  // libjpeg's JPEG_MAX_DIMENSION
    case .png: 1_000_000  // libpng's default limit, which readers have too
    case .webp: 16_383  // RFC 9649, section 3.4
    case .avif: 16_384  // libheif's limit for reading; it writes 65,536, for nobody
    case .gif: 65_535  // 16 bits in GIF89a's logical screen descriptor
    case .jxl, .tiff: 1_000_000  // theirs are longer, no other image here is
    case .heic, .svg, .jp2, .bmp, .ico, .json: nil
    }
  }

  /// Whether it holds the frames of an animation. AVIF and JPEG XL could: libvips 8.14.1 makes of frames an AVIF with
  /// several images, of which the first is shown, and a JPEG XL of one tall image. The pages of a TIFF do not move.
  var holdsFrames: Bool { self == .gif || self == .webp }

  /// Whether transparency survives.
  var holdsAlpha: Bool { self != .jpeg }

  /// Whether it can be encoded here: the encoders of AVIF and JPEG XL are in modules of libvips's, loaded now.
  var isEncodable: Bool {
    do throws(ImageError) {
      switch self {
      case .avif: try VipsLibrary.loadHEIF()
      case .jxl: try VipsLibrary.loadJXL()
      default: break
      }
      return longestSide != nil
    } catch { return false }
  }

  /// Whether a result may be of this format without being asked for it by name.
  func suits(frames: Int, hasAlpha: Bool, size: PixelSize) -> Bool {
    guard let longestSide, max(size.width, size.height) <= longestSide,
      frames == 1 || holdsFrames, !hasAlpha || holdsAlpha
    else { return false }
    let isSlow = self == .avif || self == .jxl
    return (!isSlow || size.pixels <= Self.mostSlowPixels) && isEncodable
  }

  /// The most pixels of an AVIF or a JPEG XL that was not asked for by name. Measured, 4 megapixels: 0.76 and 0.30 s of
  /// processor and 92 and 171 MB, WebP 0.23 s and 20 MB; at 16 it is 2.3 and 1.5 s, 329 and 652 MB.
  private static let mostSlowPixels = 4_000_000
}
