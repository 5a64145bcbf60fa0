// ImageFormat: the image formats Pictor knows, and what each is called on the wire.

/// An image format, as sniffed from bytes or asked for by `format=`.
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
  /// Windows icon, of which the largest image counts; never an output.
  case ico
  /// The description of a source (`/info`): no image, so never sniffed and never asked for by name.
  case json

  /// The media type sent as `Content-Type`.
  public var mediaType: String {
    switch self {
    case .svg: "image/svg+xml"
    case .ico: "image/vnd.microsoft.icon"
    case .json: "application/json"
    default: "image/\(rawValue)"
    }
  }

  /// The usual file-name extension, without the dot.
  public var fileExtension: String {
    self == .jpeg ? "jpg" : rawValue
  }

  /// The formats that a source may have.
  public static let inputs = allCases.filter { $0 != .json }

  /// The formats that can be asked for with `format=`.
  public static let outputs: [ImageFormat] = [.jpeg, .png, .webp, .avif, .gif, .jxl, .tiff]

  /// Those that not everybody shows: with `format=auto` they are for clients who name them in `Accept`.
  public static let negotiable: [ImageFormat] = [.avif, .webp, .jxl]

  /// Quality used where none is asked for (1–100), `nil` for formats that have none; as in the contract.
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
