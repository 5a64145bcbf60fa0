// ImageProcessor: the port to the imaging workers, with what a job is and what comes of it.

/// The watermark of a job; how it lies says the job's transform.
public struct ImageOverlay: Sendable {
  /// The watermark's bytes.
  public let file: FileRegion
  /// Pixels per point of it, from its name: 1, 2 or 3.
  public let density: Int

  /// A watermark.
  public init(file: FileRegion, density: Int) { (self.file, self.density) = (file, density) }
}

/// What a worker is to make of a source.
public struct ImageJob: Sendable {
  /// The source's bytes.
  public let file: FileRegion
  /// What is wanted.
  public let transform: Transform
  /// Pixels per point of the source, from its name: 1, 2 or 3.
  public let density: Int
  /// The watermark, where the transform has one.
  public let overlay: ImageOverlay?
  /// Its place in the queue; `nil`: normal, for good.
  public let priority: (any WorkPriority)?
  /// Whether a description is only wanted of a source whose pixels are whole.
  public let verifies: Bool
  /// Whose bytes these are; `nil`: no other job has them.
  public let source: SourceIdentity?

  /// A job.
  public init(
    file: FileRegion, transform: Transform, density: Int, overlay: ImageOverlay? = nil,
    priority: (any WorkPriority)? = nil, source: SourceIdentity? = nil, verifies: Bool = false
  ) {
    self.verifies = verifies
    (self.file, self.transform, self.density) = (file, transform, density)
    self.source = source
    (self.overlay, self.priority) = (overlay, priority)
  }
}

/// What a worker made.
public struct ProcessedImage: Sendable {
  /// The encoded image.
  public let bytes: ImageBytes
  /// Format of `bytes`.
  public let format: ImageFormat
  /// Size in pixels.
  public let size: PixelSize
  /// Frames, 1 for a still.
  public let frames: Int
  /// Pixels per point.
  public let density: Double
  /// Size before large-image downsizing, where that happened.
  public let scaledDownFrom: PixelSize?
  /// Lossy quality, 1–100, where `maxbytes` decided it.
  public let quality: Int?
  /// 128 bits of a cryptographic digest of `bytes`, in lower-case hexadecimal: what a strong `ETag` is made of.
  public let digest: String
  /// `queue`, `decode`, `transform` and `encode`.
  public let timings: Timings
  /// Whether the source has damage that its decoder got over.
  public let isDamaged: Bool

  /// A finished image.
  public init(
    bytes: ImageBytes, format: ImageFormat, size: PixelSize, frames: Int, density: Double,
    scaledDownFrom: PixelSize?, quality: Int? = nil, digest: String, timings: Timings,
    isDamaged: Bool = false
  ) {
    self.isDamaged = isDamaged
    self.bytes = bytes
    self.format = format
    self.size = size
    self.frames = frames
    self.density = density
    self.scaledDownFrom = scaledDownFrom
    self.quality = quality
    self.digest = digest
    self.timings = timings
  }
}

/// Whoever decodes, transforms and encodes (SDImageCoder and SDImageTransformer).
public protocol ImageProcessor: Sendable {
  /// Makes a variant. Cancelling the calling task gives the job up and throws `ImageError.cancelled`.
  func process(_ job: ImageJob) async throws(ImageError) -> ProcessedImage
}
