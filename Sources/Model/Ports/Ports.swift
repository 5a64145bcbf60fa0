// The ports: what the targets know of each other. Each protocol has one implementation in the program and, where a
// test needs one, a second in the tests.

/// The manager, as the server sees it.
public protocol ImageProvider: Sendable {
  /// What memory holds and may be served now. Never waits: it is called on a server's own thread.
  func cachedVariant(for key: CacheKey) -> Variant?
  /// Whether memory holds what may be served now, without counting that as a look-up. Never waits.
  func isCached(_ key: CacheKey) -> Bool
  /// How much work goes on for detached requests whose clients have gone. Never waits.
  var unattendedCount: Int { get }
  /// The answer to a request that memory had none for, if it can be had without waiting. Never waits itself: it is
  /// called on a server's own thread.
  func deliveryAtOnce(for request: ImageRequest) -> ImageDelivery?
  /// The answer to a request, from wherever it is or can be made. Cancelling the calling task gives up this request's
  /// share in the work; the work itself stops when nobody is left.
  func variant(for request: ImageRequest) async throws(ImageError) -> ImageDelivery
  /// The same, for whoever can send an image while it comes in.
  func answer(to request: ImageRequest) async throws(ImageError) -> ImageAnswer
  /// Keeps the answer to a request that leaves the format open as the answer to the one that names its format, too, where
  /// that has none that is fresh.
  func keepNamed(_ variant: Variant, of request: ImageRequest) async
}

extension ImageProvider {
  /// None.
  public var unattendedCount: Int { 0 }

  /// By looking it up.
  public func isCached(_ key: CacheKey) -> Bool { cachedVariant(for: key) != nil }

  /// Whole images only.
  public func answer(to request: ImageRequest) async throws(ImageError) -> ImageAnswer {
    .whole(try await variant(for: request))
  }

  /// Not kept: it is made again.
  public func keepNamed(_ variant: Variant, of request: ImageRequest) async {}
}

/// What a request gets.
public enum ImageAnswer: Sendable {
  /// An image.
  case whole(ImageDelivery)
  /// An image that is still coming in.
  case coming(StreamingDelivery)
}

/// An image on its way to one client while it comes in from its origin.
public struct StreamingDelivery: Sendable {
  /// The bytes.
  public let body: any StreamingBody
  /// What they are.
  public let info: VariantInfo
  /// How it came to be there.
  public let cacheStatus: CacheStatus
  /// Gives up this request's share in the transfer. To be called when nobody reads any more, whole or not.
  public let end: @Sendable () -> Void

  /// An image that is still coming in.
  public init(
    body: any StreamingBody, info: VariantInfo, cacheStatus: CacheStatus,
    end: @escaping @Sendable () -> Void
  ) {
    (self.body, self.info, self.cacheStatus, self.end) = (body, info, cacheStatus, end)
  }
}

/// The memory tier.
public protocol MemoryCache: Sendable {
  /// The variant kept under `key`, where it is fresh: a hit, and otherwise a miss. Noted as a use either way. Never waits.
  func variant(for key: CacheKey, freshAt now: UnixTime) -> Variant?
  /// The variant kept under `key`, fresh or not; neither counted nor noted as a use. Never waits.
  func peek(_ key: CacheKey) -> Variant?
  /// Keeps a variant whose body is in memory, evicting others where the limit demands it. Tells whether it is kept.
  func store(_ variant: Variant) -> Bool
  /// Forgets one variant.
  func remove(_ key: CacheKey)
  /// Forgets every variant of a source. Takes time in proportion to what is kept.
  func removeVariants(of source: CacheKey)
  /// Forgets every variant whose key is meant; tells how many there were. Takes time in proportion to what is kept.
  func removeAll(where isMeant: (CacheKey) -> Bool) -> Int
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
  /// Forgets every variant of a source; the source stays. None of them is found any more when this returns. Takes time
  /// in proportion to what is kept.
  func removeVariants(of source: CacheKey) async
  /// Has what a purge means removed, and sees to it that the purge outlives this run until that is done. What is not
  /// removed yet may still be read: whoever reads asks the list of purges.
  ///
  /// - Returns: how many entries went; `nil` where they are being looked for.
  /// - Throws: `internal` where the purge cannot be written down.
  func purge(_ purge: Purge) async throws(ImageError) -> Int?
  /// Forgets everything; tells how many entries there were. None of them is found any more when this returns.
  ///
  /// - Throws: `internal` where it cannot be written down, and a restart may find entries again.
  func clear() async throws(ImageError) -> Int
  /// Removes what is too old, and where the tier is nearly full, what was least recently used; returns when that is done.
  func clean() async -> CleanReport
  /// What is kept under `key`, without its bytes: neither counted nor noted as a use.
  func look(for key: CacheKey) async -> CacheEntryInfo?
}

/// Something kept, without its bytes.
public struct CacheEntryInfo: Hashable, Sendable {
  /// Bytes of its body.
  public let bytes: Int
  /// How long it may be served unasked.
  public let freshness: Freshness
  /// The generation of its loading; see `PurgeList`.
  public let generation: Int

  /// Something kept.
  public init(bytes: Int, freshness: Freshness, generation: Int) {
    (self.bytes, self.freshness, self.generation) = (bytes, freshness, generation)
  }
}

/// What a read of a body gave that is still coming in.
public enum PartialRead: Hashable, Sendable {
  /// So many bytes, at least one.
  case bytes(Int)
  /// Nothing at the moment.
  case notYet
  /// The body is whole, and read to its end.
  case end
  /// The rest will not come.
  case failed
}

/// A body while it comes in; everyone may read it from its first byte.
public protocol StreamingBody: AnyObject, Sendable {
  /// The origin's answer.
  var origin: OriginResponse { get }
  /// Bytes of the whole body; `nil` where the origin does not say.
  var expected: Int? { get }
  /// What `Download.version` of the whole body will be.
  var version: UInt64 { get }
  /// Whether all that was promised is there, though the loader may not have looked at its end yet.
  var isComplete: Bool { get }
  /// Copies what there is from `position` on. Never waits.
  func read(at position: Int, into buffer: UnsafeMutableRawBufferPointer) -> PartialRead
  /// Has `observer` called, on whatever thread, when a read that gave `notYet` may give something else.
  func observe(_ observer: @escaping @Sendable () -> Void) -> Observation
}

/// A fetched body with what came along.
public struct Download: Sendable {
  /// The body, whole.
  public let file: FileRegion
  /// The origin's answer.
  public let origin: OriginResponse
  /// `queue`, `dns`, `connect`, `tls`, `ttfb` and `download`.
  public let timings: Timings
  /// Tells these bytes from any others: made by chance, of a local file's date and size where it is one; never 0.
  public let version: UInt64

  /// A fetched body.
  public init(
    file: FileRegion, origin: OriginResponse, timings: Timings,
    version: UInt64 = .random(in: 1...(.max))
  ) {
    (self.file, self.origin, self.timings) = (file, origin, timings)
    self.version = version
  }
}

/// The priority of work that several wait for: the highest that any of them asked for, so it may be raised meanwhile.
public protocol WorkPriority: AnyObject, Sendable {
  /// Has `observer` told of each raise from now on, on whatever thread raises; it must not wait.
  ///
  /// - Returns: the priority now.
  func observe(_ observer: @escaping @Sendable (LoadPriority) -> Void) -> LoadPriority
  /// Requests that wait for the work now.
  var waiters: Int { get }
}

/// What tells one state of a source from another (RFC 9110, section 8.8); values as the origin sent them.
public struct Validators: Hashable, Sendable {
  /// `ETag`.
  public let etag: String?
  /// `Last-Modified`.
  public let lastModified: String?

  /// Those of an origin's answer; `nil` where it has none.
  public init?(_ origin: OriginResponse) {
    guard origin.etag != nil || origin.lastModified != nil else { return nil }
    (etag, lastModified) = (origin.etag, origin.lastModified)
  }
}

/// What a loader is to bring.
public struct LoadRequest: Sendable {
  /// Where from.
  public let url: SourceURL
  /// Of what is kept already: an origin whose source is still the same says so and sends no body (RFC 9110, section 13).
  public let validators: Validators?
  /// Its place in the queue; `nil`: normal, for good.
  public let priority: (any WorkPriority)?
  /// What of a client's own header goes along, to `url`'s origin and no other.
  public let forwarded: [HeaderField]
  /// The servers that it was asked for through; origins are told of them (RFC 8586).
  public let trail: ServerTrail
  /// Is given the head of each final answer, of whatever status, before its body, on the loader's thread, where it must not
  /// wait. A loader that asks no origin never calls it.
  public let onHead: (@Sendable (OriginResponse) -> Void)?
  /// Is given a body of acceptable status before its first byte, on the loader's thread, where it must not wait. A loader
  /// whose bodies do not come bit by bit never calls it.
  public let onBody: (@Sendable (any StreamingBody) -> Void)?

  /// A request.
  public init(
    url: SourceURL, validators: Validators? = nil, priority: (any WorkPriority)? = nil,
    forwarded: [HeaderField] = [], trail: ServerTrail = ServerTrail(),
    onHead: (@Sendable (OriginResponse) -> Void)? = nil,
    onBody: (@Sendable (any StreamingBody) -> Void)? = nil
  ) {
    (self.url, self.trail) = (url, trail)
    self.validators = validators
    self.priority = priority
    self.forwarded = forwarded
    self.onHead = onHead
    self.onBody = onBody
  }
}

/// What a loader brought.
public enum LoadResult: Sendable {
  /// A body.
  case fetched(Download)
  /// The origin's 304 to a request with validators, and how long asking took.
  case notModified(OriginResponse, Timings)
}

/// Whoever brings bytes from where a URL points to (SDImageLoader).
public protocol ImageLoader: Sendable {
  /// Fetches the whole body. Cancelling the calling task stops the transfer and throws `ImageError.cancelled`.
  func load(_ request: LoadRequest) async throws(ImageError) -> LoadResult
}

/// How long an origin's answer may be kept (RFC 9111).
public protocol FreshnessPolicy: Sendable {
  /// The freshness of an origin's answer.
  ///
  /// - Parameters:
  ///   - url: what was asked for; rules may be for its host alone.
  ///   - isAuthorized: whether the request had a client's `Authorization` (section 3.5).
  ///   - requestedAt: when it was asked for: until it came, the answer may have aged on the way (section 4.2.3).
  ///   - receivedAt: when its head came in.
  func freshness(
    of origin: OriginResponse, from url: SourceURL, isAuthorized: Bool, requestedAt: UnixTime,
    receivedAt: UnixTime
  ) -> Freshness
}
