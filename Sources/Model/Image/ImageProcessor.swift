// ImageProcessor: the port to the imaging workers, with its jobs and results.

import Platform

/// The watermark of a job. The transform defines its placement.
public struct ImageOverlay: Sendable {
  /// The watermark's bytes.
  public let file: FileRegion
  /// Pixels per point of the watermark, from its file name: 1, 2 or 3.
  public let density: Int

  /// Creates an overlay.
  public init(file: FileRegion, density: Int) { (self.file, self.density) = (file, density) }
}

/// A job for an imaging worker.
public struct ImageJob: Sendable {
  /// The source's bytes.
  public let file: FileRegion
  /// The transform to apply.
  public let transform: Transform
  /// Pixels per point of the source, from its file name: 1, 2 or 3.
  public let density: Int
  /// The watermark, if the transform has one.
  public let overlay: ImageOverlay?
  /// The priority in the queue; `nil`: always normal.
  public let priority: (any WorkPriority)?
  /// Whether a job for a description (`Product.info`) also decodes all pixels, to detect damage.
  public let verifies: Bool
  /// The identity of the source's bytes; `nil` if no other job shares them.
  public let source: SourceIdentity?

  /// Creates a job.
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

/// The result of a job.
public struct ProcessedImage: Sendable {
  /// The encoded image.
  public let bytes: ImageBytes
  /// The format of `bytes`.
  public let format: ImageFormat
  /// The size in pixels.
  public let size: PixelSize
  /// The number of frames, 1 for a still image.
  public let frames: Int
  /// Pixels per point.
  public let density: Double
  /// The size before large-image downscaling, if it applied.
  public let scaledDownFrom: PixelSize?
  /// The lossy quality, 1–100, if `maxbytes` determined it.
  public let quality: Int?
  /// 128 bits of a cryptographic digest of `bytes`, in lower-case hexadecimal, for a strong `ETag`.
  public let digest: String
  /// `queue`, `decode`, `transform` and `encode`.
  public let timings: Timings
  /// Whether the source has damage that its decoder tolerated.
  public let isDamaged: Bool

  /// Creates a result.
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

/// Decodes, transforms and encodes images (SDImageCoder and SDImageTransformer).
public protocol ImageProcessor: Sendable {
  /// Runs a job. Cancelling the calling task cancels the job and throws `ImageError.cancelled`.
  func process(_ job: ImageJob) async throws(ImageError) -> ProcessedImage
}
