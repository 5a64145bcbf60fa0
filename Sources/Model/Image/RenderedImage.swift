// RenderedImage: the properties of an encoded image, and what an imaging worker reports of a job.

/// The properties of an encoded image. The bytes are stored beside it.
///
/// Each variant in memory has one, so the numbers are stored in as few bytes as they need.
public struct RenderedImage: Hashable, Sendable {
  /// Pixels per point, as in `Content-DPR`. Lower than requested if the source had too few pixels
  /// or a limit reduced the result.
  public var density: Double
  /// The size in pixels before a pixel limit or `maxbytes` reduced the result (`X-Scaled-Down`);
  /// `nil` if neither did.
  public var scaledDownFrom: PixelSize?
  /// The format of the bytes: one of `ImageFormat.outputs`, or that of a source that is passed.
  public var format: ImageFormat
  private var storedQuality: UInt8?
  private var storedWidth: UInt32
  private var storedHeight: UInt32
  private var storedFrames: UInt32
  private var storedDroppedFrames: UInt32

  /// Creates the properties of an image, by default a still one that no limit changed. Clamps
  /// numbers to what their properties can have.
  public init(
    format: ImageFormat, size: PixelSize, frames: Int = 1, density: Double,
    scaledDownFrom: PixelSize? = nil, quality: Int? = nil, droppedFrames: Int = 0
  ) {
    self.density = density
    self.scaledDownFrom = scaledDownFrom
    self.format = format
    storedQuality = quality.map(UInt8.init(clamping:))
    storedWidth = UInt32(clamping: size.width)
    storedHeight = UInt32(clamping: size.height)
    storedFrames = UInt32(clamping: frames)
    storedDroppedFrames = UInt32(clamping: droppedFrames)
  }

  /// The size of one frame, in pixels, each side 0 to 2^32 - 1.
  public var size: PixelSize {
    get { PixelSize(width: Int(storedWidth), height: Int(storedHeight)) }
    set {
      storedWidth = UInt32(clamping: newValue.width)
      storedHeight = UInt32(clamping: newValue.height)
    }
  }

  /// The number of frames, 1 for a still image, at most 2^32 - 1. libwebp merges equal consecutive
  /// frames into one with the sum of their delays.
  public var frames: Int {
    get { Int(storedFrames) }
    set { storedFrames = UInt32(clamping: newValue) }
  }

  /// The number of frames of the source's animation that the result lacks although the request
  /// asked for no single one (`X-Frames-Dropped`), at most 2^32 - 1.
  public var droppedFrames: Int {
    get { Int(storedDroppedFrames) }
    set { storedDroppedFrames = UInt32(clamping: newValue) }
  }

  /// The lossy quality, 1–100, if `maxbytes` determined it (`X-Quality`).
  public var quality: Int? {
    get { storedQuality.map(Int.init) }
    set { storedQuality = newValue.map(UInt8.init(clamping:)) }
  }
}

/// What the bytes of a variant are.
public enum VariantContent: Hashable, Sendable {
  /// An image.
  case image(RenderedImage)
  /// The JSON description of a source (`/info`).
  case sourceDescription

  /// The image; `nil` for a description.
  public var image: RenderedImage? {
    if case .image(let image) = self { image } else { nil }
  }

  /// The media type for `Content-Type`.
  public var mediaType: String {
    switch self {
    case .image(let image): image.format.mediaType
    case .sourceDescription: "application/json"
    }
  }
}

/// What an imaging worker reports of a finished job, beside the bytes.
public struct RenderReport: Hashable, Sendable {
  /// What the bytes are.
  public var content: VariantContent
  /// The first 128 bits of the bytes' SHA-256 in lower-case hexadecimal, for a strong `ETag`.
  public var digest: String
  /// `decode`, `transform` and `encode`; the server adds `queue`.
  public var timings: Timings
  /// Whether the source has damage that its decoder tolerated.
  public var isDamaged: Bool
  /// The faces of the source, if the job had to know them.
  public var faces: [PixelArea]?

  /// The maximum number of faces.
  public static let maximumFaces = 32

  /// Creates a report.
  public init(
    content: VariantContent, digest: String, timings: Timings = Timings(), isDamaged: Bool = false
  ) {
    self.content = content
    self.digest = digest
    self.timings = timings
    self.isDamaged = isDamaged
  }
}
