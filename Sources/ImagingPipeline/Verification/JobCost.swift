// JobCost: how long a job will take, estimated from headers before anything is decoded.

import ImagingWire
import Model

/// Seconds of processor, as formats and sizes suggest; what takes longer all the same meets the limit of processor time.
struct JobCost {
  private(set) var seconds = 0.0
  /// Whether it is the same whatever is asked for.
  private var isOfSource = true

  /// Jobs that take longer give way to others.
  static let mostSecondsOfQuick = 1.0

  /// What decoding a source takes, whole: most formats cannot leave anything out.
  init(decoding header: SourceHeader) {
    // A vector's cost is that of its filters (`VectorCost`).
    guard header.format != .svg else { return }
    let frames = header.isAnimation ? header.pages : 1
    seconds = Double(header.size.pixels) * Double(frames) * Self.nanoseconds(header.format) / 1e9
  }

  /// Adds what encoding takes.
  ///
  /// - Parameter isSearched: Whether the quality is searched for, which takes several attempts.
  mutating func add(
    encoding size: PixelSize, frames: Int, as format: ImageFormat, isSearched: Bool
  ) {
    isOfSource = false
    let pixels = Double(size.pixels) * Double(frames) * (isSearched ? Self.attempts : 1)
    seconds += pixels * Self.nanosecondsOfEncoding(format) / 1e9
  }

  /// Whether a job gives way.
  ///
  /// - Parameter isQuickOnly: Whether it does where it takes long.
  /// - Throws: `ImageError.cancelled` where it does; `.tooCostly` where it takes more than `limits` let it, within
  ///   `.ofVariant` where another variant may not.
  func check(_ limits: ImagingLimits, isQuickOnly: Bool) throws(ImageError) {
    guard seconds <= limits.mostSeconds else {
      let error = ImageError.tooCostly(
        reason: "it would take about \(Int(seconds.rounded())) s of processor; at most "
          + "\(Int(limits.mostSeconds)) are begun with")
      throw isOfSource ? error : .ofVariant(error)
    }
    if isQuickOnly, seconds > Self.mostSecondsOfQuick { throw .cancelled }
  }

  /// Of `maxbytes`: eight at the most, most of them smaller.
  private static let attempts = 5.0

  /// A pixel's decoding. Measured with libvips 8.14.1 beside builds, 25 megapixels of photographs: JPEG 15 (progressive 32),
  /// PNG 24 to 38, lossy WebP 57 and lossless 34, AVIF 46, JPEG XL 55, JPEG 2000 110, TIFF with LZW 23.
  private static func nanoseconds(_ format: ImageFormat) -> Double {
    switch format {
    case .jpeg: 15
    case .png: 30
    case .gif: 15
    case .webp: 40
    case .heic, .avif: 40
    case .jxl: 60
    case .jp2: 110
    case .tiff: 20
    case .bmp, .ico: 10
    case .svg, .json: 0
    }
  }

  /// A pixel's encoding, its resizing included.
  private static func nanosecondsOfEncoding(_ format: ImageFormat) -> Double {
    switch format {
    case .jpeg: 20
    case .png: 60
    case .webp: 60
    case .avif: 170
    case .jxl: 90
    case .gif: 250
    case .tiff: 30
    case .heic, .jp2, .svg, .bmp, .ico, .json: 0
    }
  }
}
