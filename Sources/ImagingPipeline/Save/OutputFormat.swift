// OutputFormat: the limits and abilities of each output format.

import Model

extension ImageFormat {
  /// The maximum length of a side in pixels; `nil` for a format that is not an output.
  var longestSide: Int? {
    switch self {
    case .jpeg: 65_500  // libjpeg's JPEG_MAX_DIMENSION
    case .png: 1_000_000  // libpng's default limit, for readers too
    case .webp: 16_383  // RFC 9649, section 3.4
    case .avif: 16_384  // libheif's limit for reading; it writes up to 65,536
    case .gif: 65_535  // 16 bits in GIF89a's logical screen descriptor
    case .jxl, .tiff: 1_000_000  // the formats allow more, other steps do not
    case .heic, .svg, .jp2, .bmp, .ico: nil
    }
  }

  /// Whether the format holds the frames of an animation. libvips 8.14.1 cannot write animated AVIF
  /// or JPEG XL: it writes several images or one tall image. The pages of a TIFF are not an
  /// animation.
  var holdsFrames: Bool { self == .gif || self == .webp }

  /// Whether the format holds transparency.
  var holdsAlpha: Bool { self != .jpeg }

  /// Whether this build can encode the format. libvips reads AVIFs and JPEG XLs, and
  /// encodes some AVIFs, with modules, which this call loads: results are read again (`EncodedCheck`).
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

  /// Whether a result may have this format without an explicit request.
  func suits(frames: Int, hasAlpha: Bool, size: PixelSize) -> Bool {
    guard let longestSide, max(size.width, size.height) <= longestSide,
      frames == 1 || holdsFrames, !hasAlpha || holdsAlpha
    else { return false }
    let isSlow = self == .avif || self == .jxl
    return (!isSlow || size.pixels <= Self.maximumSlowPixels) && isEncodable
  }

  /// The maximum pixels of an AVIF or JPEG XL without an explicit request. 16 megapixels of AVIF
  /// take 2.3 s of processor time and 329 MB; 4 of WebP take 0.23 s and 20 MB.
  private static let maximumSlowPixels = 4_000_000
}
