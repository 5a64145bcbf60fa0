// ImageFormat: the picture formats Pictor knows, and what each is called on the wire.

/// A picture format, as sniffed from bytes or asked for by `format=`.
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

  /// The media type sent as `Content-Type`.
  public var mediaType: String {
    self == .svg ? "image/svg+xml" : "image/\(rawValue)"
  }

  /// The usual file-name extension, without the dot.
  public var fileExtension: String {
    self == .jpeg ? "jpg" : rawValue
  }

  /// The formats that can be asked for with `format=` so far.
  public static let outputs: [ImageFormat] = [.jpeg, .png, .webp, .gif]

  /// Quality used where none is asked for (1–100), `nil` for formats that have none; as in the contract.
  public var defaultQuality: Int? {
    switch self {
    case .jpeg: 80
    case .webp: 79
    default: nil
    }
  }
}
