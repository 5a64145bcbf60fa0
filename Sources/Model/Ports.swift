// The ports: what the targets know of each other. Each protocol has one implementation in the program and, where a
// test needs one, a second in the tests.

/// The manager, as the server sees it.
public protocol ImageProvider: Sendable {
  /// What memory holds and may be served now. Never waits: it is called on a server's own thread.
  func cachedVariant(for key: CacheKey) -> Variant?
  /// The answer to a request that memory had none for, if it can be had without waiting. Never waits itself: it is
  /// called on a server's own thread.
  func deliveryAtOnce(for request: ImageRequest) -> Delivery?
  /// The answer to a request, from wherever it is or can be made. Cancelling the calling task gives up this request's
  /// share in the work; the work itself stops when nobody is left.
  func variant(for request: ImageRequest) async throws(ImageError) -> Delivery
}

/// The memory tier.
public protocol MemoryCache: Sendable {
  /// The variant kept under `key`, fresh or not. Never waits.
  func variant(for key: CacheKey) -> Variant?
  /// The same for a second look within one request: not counted. Never waits.
  func peek(_ key: CacheKey) -> Variant?
  /// Keeps a variant whose body is in memory, evicting others where the limit demands it. Tells whether it is kept.
  func store(_ variant: Variant) -> Bool
  /// Forgets one variant.
  func remove(_ key: CacheKey)
}

/// The disk tier. What it cannot read back whole is absent, and reading never fails otherwise.
public protocol DiskCache: Sendable {
  /// The variant kept under `key`, fresh or not; small bodies in memory, others as a file.
  func variant(for key: CacheKey) async -> Variant?
  /// The same, if it is small, can be had without waiting and `isWanted` says so; `nil` says nothing about what is kept.
  func variantAtOnce(for key: CacheKey, where isWanted: (VariantInfo) -> Bool) -> Variant?
  /// The source kept under `key`, fresh or not.
  func source(for key: CacheKey) async -> Source?
  /// Keeps a variant, and tells whether it does. It can be read back at once; it is written behind the caller's back.
  func store(_ variant: Variant) -> Bool
  /// Keeps a source, and tells whether it does. It can be read back at once; it is written behind the caller's back.
  func store(_ source: Source) -> Bool
  /// Forgets one source or one variant.
  func remove(_ key: CacheKey) async
}

/// A fetched body with what came along.
public struct Download: Sendable {
  /// The body, whole.
  public let file: FileRegion
  /// The origin's answer.
  public let origin: OriginResponse
  /// `queue`, `dns`, `connect`, `tls`, `ttfb` and `download`.
  public let timings: Timings

  /// A fetched body.
  public init(file: FileRegion, origin: OriginResponse, timings: Timings) {
    (self.file, self.origin, self.timings) = (file, origin, timings)
  }
}

/// Whoever brings bytes from where a URL points to (SDImageLoader).
public protocol ImageLoader: Sendable {
  /// Fetches the whole body. Cancelling the calling task stops the transfer and throws `ImageError.cancelled`.
  func load(_ url: SourceURL) async throws(ImageError) -> Download
}

/// What a worker is to make of a source.
public struct ImageJob: Sendable {
  /// The source's bytes.
  public let file: FileRegion
  /// What is wanted.
  public let transform: Transform
  /// Pixels per point of the source, from its name: 1, 2 or 3.
  public let density: Int

  /// A job.
  public init(file: FileRegion, transform: Transform, density: Int) {
    (self.file, self.transform, self.density) = (file, transform, density)
  }
}

/// What a worker made.
public struct ProcessedImage: Sendable {
  /// The encoded picture.
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
  /// 128 bits of a cryptographic digest of `bytes`, in lower-case hexadecimal: what a strong `ETag` is made of.
  public let digest: String
  /// `queue`, `decode`, `transform` and `encode`.
  public let timings: Timings

  /// A finished picture.
  public init(
    bytes: ImageBytes, format: ImageFormat, size: PixelSize, frames: Int, density: Double,
    scaledDownFrom: PixelSize?, digest: String, timings: Timings
  ) {
    self.bytes = bytes
    self.format = format
    self.size = size
    self.frames = frames
    self.density = density
    self.scaledDownFrom = scaledDownFrom
    self.digest = digest
    self.timings = timings
  }
}

/// Whoever decodes, transforms and encodes (SDImageCoder and SDImageTransformer).
public protocol ImageProcessor: Sendable {
  /// Makes a variant. Cancelling the calling task gives the job up and throws `ImageError.cancelled`.
  func process(_ job: ImageJob) async throws(ImageError) -> ProcessedImage
}

/// How long an origin's answer may be kept (RFC 9111).
public protocol FreshnessPolicy: Sendable {
  /// The freshness of an answer that came in at `now`.
  func freshness(of origin: OriginResponse, receivedAt now: UnixTime) -> Freshness
}
