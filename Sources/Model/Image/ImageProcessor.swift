// ImageProcessor: the port to the imaging workers, with its jobs and results.

/// The watermark of a job. The transform defines its placement.
public struct ImageOverlay: Sendable {
  /// The watermark's bytes.
  public let file: FileRegion
  /// Pixels per point of the watermark, from its file name: 1, 2 or 3.
  public let density: Int

  /// Creates an overlay.
  public init(file: FileRegion, density: Int) {
    self.file = file
    self.density = density
  }
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
  /// The client whose header fields the source was loaded with (`CacheKey.variation`); `nil` if all
  /// clients share the source. A worker has sources of one client only.
  public let client: String?
  /// Whether the file is a variant, which becomes smaller without a change of its pixels. Of the
  /// transform, only the format counts.
  public let isRecompression: Bool
  /// Whether encoders that gain from it get more effort than the configured one: WebP and AVIF.
  public let hasMoreEffort: Bool
  /// Whether the job runs only while workers are idle. It gives way to other jobs with
  /// `ImageError.cancelled`.
  public let isBackground: Bool

  /// Creates a job.
  public init(
    file: FileRegion, transform: Transform, density: Int, overlay: ImageOverlay? = nil,
    priority: (any WorkPriority)? = nil, source: SourceIdentity? = nil, client: String? = nil,
    verifies: Bool = false, isRecompression: Bool = false,
    hasMoreEffort: Bool = false, isBackground: Bool = false
  ) {
    self.file = file
    self.transform = transform
    self.density = density
    self.overlay = overlay
    self.priority = priority
    self.source = source
    self.client = client
    self.verifies = verifies
    self.isRecompression = isRecompression
    self.hasMoreEffort = hasMoreEffort
    self.isBackground = isBackground
  }
}

/// The result of a job.
public struct ProcessedImage: Sendable {
  /// The encoded image, or the description of the source.
  public let body: Variant.Body
  /// What the worker reports of `body`.
  public var report: RenderReport
  /// The processor time of the worker, all threads together.
  public var processorTime = Duration.zero

  /// Creates a result.
  public init(body: Variant.Body, report: RenderReport) {
    self.body = body
    self.report = report
  }

  /// The properties of the image; `nil` for a description.
  public var rendered: RenderedImage? { report.content.image }
}

/// Decodes, transforms and encodes images (SDImageCoder and SDImageTransformer).
public protocol ImageProcessor: Sendable {
  /// Runs a job. Cancelling the calling task cancels the job and throws `ImageError.cancelled`.
  func process(_ job: ImageJob) async throws(ImageError) -> ProcessedImage
}
