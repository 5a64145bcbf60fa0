// ImageFormat: the table of image formats, with what depends on the format alone.

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

  /// The formats of sources.
  public static let inputs = allCases

  /// The formats for `format=`, in the order of messages.
  public static let outputs: [ImageFormat] = [.jpeg, .png, .webp, .avif, .gif, .jxl, .tiff]

  /// The outputs with a quality, in the order of the configuration.
  public static let lossy: [ImageFormat] = [.jpeg, .webp, .avif, .jxl]

  /// The formats that only some clients support. `format=auto` uses them for clients that list them
  /// in `Accept`.
  public static let negotiable: [ImageFormat] = [.avif, .webp, .jxl]

  /// The formats that are made smaller from their own bytes, without a change of their pixels.
  public static let recompressible: Set<ImageFormat> = [.jpeg, .png]

  /// What is known of the format.
  public var traits: FormatTraits {
    switch self {
    case .jpeg:
      FormatTraits(
        title: "a JPEG", fileExtension: "jpg", defaultQuality: 80,
        longestSide: 65_500,  // libjpeg's JPEG_MAX_DIMENSION
        holdsAlpha: false, encodingBytes: 7)
    case .png:
      FormatTraits(
        title: "a PNG",
        longestSide: 1_000_000,  // libpng's default limit, for readers too
        isLossless: true, encoding: .init(flat: 40, busy: 80), encodingBytes: 5.5)
    case .gif:
      FormatTraits(
        title: "a GIF",
        longestSide: 65_535,  // 16 bits in GIF89a's logical screen descriptor
        holdsFrames: true, encodingBytes: 17.5)
    case .webp:
      FormatTraits(
        title: "a WebP", defaultQuality: 79,
        longestSide: 16_383,  // RFC 9649, section 3.4
        holdsFrames: true, decoderHoldsImage: true, encoding: .init(flat: 25, busy: 75),
        encodingBytes: 9)
    case .tiff:
      FormatTraits(
        title: "a TIFF",
        longestSide: 1_000_000,  // the format allows more, other steps do not
        isLossless: true, isRisky: true, encoding: .init(flat: 20, busy: 50), encodingBytes: 5.5)
    case .heic:
      FormatTraits(
        title: "a HEIC", isRisky: true, decoderHoldsImage: true, decoderTurns: true,
        decodingBytes: 2.3)
    case .avif:
      FormatTraits(
        title: "an AVIF", defaultQuality: 63,
        longestSide: 16_384,  // libheif's limit for reading; it writes up to 65,536
        isRisky: true, decoderHoldsImage: true, decoderTurns: true, encodesSlowly: true,
        decodingBytes: 3.2, encoding: .init(flat: 10, busy: 40), encodingBytes: 31)
    case .svg: FormatTraits(title: "an SVG", subtype: "svg+xml", isRisky: true)
    case .jxl:
      FormatTraits(
        title: "a JPEG XL", defaultQuality: 77,
        longestSide: 1_000_000,  // the format allows more, other steps do not
        isRisky: true, decoderHoldsImage: true, decoderTurns: true, encodesSlowly: true,
        // Flat pixels take 17 with losses and 80 without, which the bytes do not tell.
        decoding: .init(byte: 60, pixel: 55), decodingBytes: 2.2,
        encoding: .init(flat: 50, busy: 75), encodingBytes: 70)
    case .jp2:
      FormatTraits(
        title: "a JPEG 2000", isRisky: true, decoderHoldsImage: true,
        decoding: .init(byte: 100, pixel: 45))
    case .bmp:
      FormatTraits(title: "a BMP", decoding: .init(byte: 0, pixel: 12), decodingBytes: 1)
    case .ico:
      FormatTraits(
        title: "an icon", subtype: "vnd.microsoft.icon", decoding: .init(byte: 0, pixel: 12),
        decodingBytes: 1)
    }
  }

  /// The media type for `Content-Type`.
  public var mediaType: String { "image/" + (traits.subtype ?? rawValue) }

  /// The usual file-name extension, without the dot.
  public var fileExtension: String { traits.fileExtension ?? rawValue }

  /// Whether results have this format.
  public var isOutput: Bool { traits.longestSide != nil }

  /// Returns the format of a result for `format=source`: this one, and for one that is not written
  /// PNG, but JPEG for a HEIC or JPEG 2000 without alpha.
  public func kept(hasAlpha: Bool) -> ImageFormat {
    isOutput ? self : (self == .heic || self == .jp2) && !hasAlpha ? .jpeg : .png
  }

  /// Whether an encoding in this format saves enough to be sent in place of the source's own
  /// pixels, which no request has changed.
  ///
  /// What saves less than a tenth of the bytes is not worth the loss of another encoding.
  public func isWorth(encoding encoded: Int, inPlaceOf own: Int) -> Bool {
    traits.isLossless ? encoded < own : encoded < own - own / 10
  }
}

/// A row of the table of formats.
public struct FormatTraits: Sendable {
  /// The name for people, with its article.
  public var title: String
  /// The media type without `image/`; `nil`: the format's name.
  var subtype: String?
  /// The file-name extension; `nil`: the format's name.
  var fileExtension: String?

  /// The default quality, 1–100; `nil` for a format without one.
  public var defaultQuality: Int?
  /// The maximum length of a side of an output in pixels; `nil` for a format that is not an output.
  public var longestSide: Int?
  /// Whether an output holds the frames of an animation. libvips 8.14.1 cannot write animated AVIF
  /// or JPEG XL: it writes several images or one tall image. The pages of a TIFF are not an
  /// animation.
  public var holdsFrames = false
  /// Whether the format holds transparency.
  public var holdsAlpha = true
  /// Whether another encoding loses nothing.
  var isLossless = false

  /// Whether the decoder is large or seldom tested.
  public var isRisky = false
  /// Whether the decoder holds the whole image, in up to three copies.
  public var decoderHoldsImage = false
  /// Whether the decoder turns the image upright: libheif by the container (ISO/IEC 23008-12,
  /// 6.5.10), libjxl by the codestream (ISO/IEC 18181-1, D.3). The EXIF orientation repeats that
  /// rotation and must not be applied again.
  public var decoderTurns = false
  /// Whether the encoder may be slower than most decoders.
  public var encodesSlowly = false

  /// The cost of decoding, for formats whose cost depends on nothing else (`JobCost`).
  public var decoding = Decoding(byte: 0, pixel: 0)
  /// Bytes to decode a pixel of one sample of 8 bits, for such formats.
  public var decodingBytes = 0.0
  /// The cost of encoding, for formats whose cost depends on nothing else.
  public var encoding = Encoding(flat: 0, busy: 0)
  /// Bytes to encode a pixel of three samples: VmData of workers that encode 12 megapixels.
  public var encodingBytes = 0.0

  /// Nanoseconds of decoding.
  public struct Decoding: Sendable {
    /// For each byte, as far as there are not more of them than pixels.
    public var byte: Double
    /// For each pixel.
    public var pixel: Double
  }

  /// Nanoseconds of encoding a pixel.
  public struct Encoding: Sendable {
    /// For any pixel.
    public var flat: Double
    /// More for a pixel of a busy image.
    public var busy: Double
  }
}
