// ImageFormat: the supported image formats and their media types.

/// An image format, detected from bytes or requested with `format=`.
public enum ImageFormat: String, CaseIterable, Sendable, Codable {
  /// ISO/IEC 10918.
  case jpeg
  /// ISO/IEC 15948.
  case png
  /// Graphics Interchange Format 87a and 89a.
  case gif
  /// RFC 9649.
  case webp
  /// Tag Image File Format 6.0.
  case tiff
  /// HEIF with HEVC.
  case heic
  /// HEIF with AV1.
  case avif
  /// Scalable Vector Graphics; never an output.
  case svg
  /// JPEG XL, ISO/IEC 18181.
  case jxl
  /// JPEG 2000, ISO/IEC 15444; never an output.
  case jp2
  /// Windows bitmap; never an output.
  case bmp
  /// Windows icon; its largest image is used. Never an output.
  case ico

  /// The media type for `Content-Type`.
  public var mediaType: String {
    switch self {
    case .svg: "image/svg+xml"
    case .ico: "image/vnd.microsoft.icon"
    default: "image/\(rawValue)"
    }
  }

  /// The usual file-name extension, without the dot.
  public var fileExtension: String {
    self == .jpeg ? "jpg" : rawValue
  }

  /// The formats of sources.
  public static let inputs = allCases

  /// The formats for `format=`.
  public static let outputs: [ImageFormat] = [.jpeg, .png, .webp, .avif, .gif, .jxl, .tiff]

  /// The formats that only some clients support. `format=auto` uses them for clients that list them
  /// in `Accept`.
  public static let negotiable: [ImageFormat] = [.avif, .webp, .jxl]

  /// The formats that are made smaller from their own bytes, without a change of their pixels.
  public static let recompressible: Set<ImageFormat> = [.jpeg, .png]

  /// Whether an encoding in this format saves enough to be sent in place of the source's own pixels, which no request
  /// has changed.
  ///
  /// What saves less than a tenth of the bytes is not worth the loss of another encoding. PNG and TIFF lose nothing.
  public func isWorth(encoding encoded: Int, inPlaceOf own: Int) -> Bool {
    self == .png || self == .tiff ? encoded < own : encoded < own - own / 10
  }

  /// The default quality (1–100), or `nil` for formats without one.
  public var defaultQuality: Int? {
    switch self {
    case .jpeg: 80
    case .webp: 79
    case .avif: 63
    case .jxl: 77
    default: nil
    }
  }
}
