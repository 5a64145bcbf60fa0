// Ports: the protocols through which the targets meet.

/// The manager, as the server uses it.
public protocol ImageProvider: Sendable {
  /// Returns a fresh variant from memory. Never blocks: event loops call it.
  func cachedVariant(for key: CacheKey) -> Variant?
  /// Returns whether memory has a fresh variant, without counting a look-up. Never blocks.
  func isCached(_ key: CacheKey) -> Bool
  /// The number of detached flights without waiting clients. Never blocks.
  var unattendedCount: Int { get }
  /// Returns a response available without blocking, after `cachedVariant` found none. Event loops
  /// call it.
  func deliveryAtOnce(for request: ImageRequest) -> ImageDelivery?
  /// Returns a fresh small variant from disk if that does not block, after `cachedVariant` found
  /// none. Event loops call it. `request` is called only if more than the key is needed.
  func variantOnDisk(for key: CacheKey, of request: () -> ImageRequest?) -> Variant?
  /// Returns the response to a request, from a tier or rendered now. Cancelling the calling task
  /// leaves the flight, and the last participant to leave cancels the work.
  func variant(for request: ImageRequest) async throws(ImageError) -> ImageDelivery
  /// Joins another request's work under way, without a task. Never blocks: event loops call it.
  ///
  /// - Parameters:
  ///   - client: whose request it is.
  ///   - completion: called once, on any thread, perhaps before this returns; must not block.
  /// - Returns: a function that leaves the work, which then calls `completion` with `cancelled`.
  ///   `nil` if no such work is under way; then `completion` is not called.
  func follow(
    _ request: ImageRequest, for client: LoadClient,
    completion: @escaping @Sendable (Result<ImageDelivery, ImageError>) -> Void
  ) -> (@Sendable () -> Void)?
  /// Returns the response to a request from a caller that can stream.
  func answer(to request: ImageRequest) async throws(ImageError) -> ImageAnswer
  /// Stores a negotiated response under the key with its explicit format, too, unless that key has
  /// a fresh entry.
  func keepNamed(_ variant: Variant, of request: ImageRequest) async
}

/// The response to a request.
public enum ImageAnswer: Sendable {
  /// A complete image.
  case whole(ImageDelivery)
  /// A streaming image.
  case coming(StreamingDelivery)
}

/// An image that streams to a client while it downloads.
public struct StreamingDelivery: Sendable {
  /// The bytes.
  public let body: any StreamingBody
  /// The metadata.
  public let info: VariantInfo
  /// How the request was answered.
  public let cacheStatus: CacheStatus
  /// Leaves the transfer. The caller must call this after its last read, also of a body that is
  /// not complete.
  public let end: @Sendable () -> Void

  /// Creates a streaming delivery.
  public init(
    body: any StreamingBody, info: VariantInfo, cacheStatus: CacheStatus,
    end: @escaping @Sendable () -> Void
  ) {
    self.body = body
    self.info = info
    self.cacheStatus = cacheStatus
    self.end = end
  }
}

/// The memory tier.
public protocol MemoryCache: Sendable {
  /// Returns the variant of `key` if it is fresh (a hit, otherwise a miss). Records the use in
  /// either case. Never blocks.
  func variant(for key: CacheKey, freshAt now: UnixTime) -> Variant?
  /// Looks up a variant, fresh or not, without updating hit statistics or recency. Never blocks.
  func peek(_ key: CacheKey) -> Variant?
  /// Stores a variant whose body is in memory. Returns whether it was stored.
  ///
  /// - Parameter gone: gets what is evicted or replaced, to be released where no lock is held.
  func store(_ variant: Variant, releasing gone: inout [Variant]) -> Bool
  /// Stores a variant in place of `old`, of the same key. Returns `false` if memory has another
  /// variant, or none.
  func exchange(_ old: Variant, for variant: Variant, releasing gone: inout [Variant]) -> Bool
  /// Removes one variant.
  func remove(_ key: CacheKey)
  /// Removes all variants of a source. O(n) in the number of entries.
  func removeVariants(of source: CacheKey)
  /// Removes matching variants and returns their number. O(n) in the number of entries.
  func removeAll(where isSelected: (Variant) -> Bool) -> Int
  /// The number of variants.
  var count: Int { get }
}

extension MemoryCache {
  /// Stores a variant and releases what is evicted at once.
  @discardableResult public func store(_ variant: Variant) -> Bool {
    var gone: [Variant] = []
    return store(variant, releasing: &gone)
  }
}

/// The disk tier. An entry that cannot be read back completely counts as absent; reads have no
/// other failure.
public protocol DiskCache: Sendable {
  /// Returns the variant of `key`, fresh or not. Small bodies are in memory, others in a file.
  func variant(for key: CacheKey) async -> Variant?
  /// Returns a small variant if it is available without blocking and `isWanted` accepts it. `nil`
  /// does not mean that the tier has none.
  func variantAtOnce(for key: CacheKey, where isWanted: (VariantInfo) -> Bool) -> Variant?
  /// Returns the source of `key`, fresh or not.
  func source(for key: CacheKey) async -> Source?
  /// Stores a variant, unless `demand` defers it. A stored variant is readable at once and written
  /// in the background.
  func store(_ variant: Variant, for demand: VariantDemand) -> StoreOutcome
  /// Stores a source and returns whether the tier accepted it. It is readable at once and written
  /// in the background.
  func store(_ source: Source) -> Bool
  /// Removes one source or one variant.
  func remove(_ key: CacheKey) async
  /// Removes all sources of a URL and their variants. Returns the number of entries.
  func remove(allOf url: SourceURL) async -> Int
  /// Removes all variants of a source, but not the source. Look-ups find none of them after the
  /// call returns. O(n) in the number of entries.
  func removeVariants(of source: CacheKey) async
  /// Removes the entries of a purge, and makes the purge durable until the removal has finished.
  /// Purged entries may still be read meanwhile, so readers check the list of purges.
  ///
  /// - Returns: the number of removed entries; `nil` if the search continues in the background.
  /// - Throws: `internal` if the purge cannot be made durable.
  func purge(_ purge: Purge) async throws(ImageError) -> Int?
  /// Makes the purges durable that are in force and could not be recorded before.
  ///
  /// - Throws: `internal` if they still cannot.
  func recordPurges() async throws(ImageError)
  /// Removes all entries and returns their number. Look-ups find none of them after the call
  /// returns.
  ///
  /// - Throws: `internal` if the clear cannot be made durable and a restart may find entries again.
  func clear() async throws(ImageError) -> Int
  /// Removes expired entries, and evicts the least recently used ones if the tier is nearly full.
  /// Returns when done.
  func clean() async -> CleanReport
  /// Returns information about an entry without updating hit statistics or recency.
  func look(for key: CacheKey) async -> CacheEntryInfo?
}

extension DiskCache {
  /// Stores a vouched variant and returns whether the tier accepted it.
  @discardableResult public func store(_ variant: Variant) -> Bool {
    store(variant, for: .vouched) == .stored
  }
}

/// Information about a cache entry.
public struct CacheEntryInfo: Hashable, Sendable {
  /// The bytes of the body.
  public let bytes: Int
  /// The freshness.
  public let freshness: Freshness
  /// The generation of the load; see `PurgeList`.
  public let generation: Int
  /// The metadata; `nil` if the tier does not tell.
  public var stored: StoredMetadata?
  /// Whether a look-up has the body in memory, rather than in a file.
  public var isInMemory = false

  /// Creates entry information.
  public init(bytes: Int, freshness: Freshness, generation: Int) {
    self.bytes = bytes
    self.freshness = freshness
    self.generation = generation
  }

  /// Creates information about a variant.
  public init(_ variant: Variant) {
    self.init(
      bytes: variant.body.count, freshness: variant.info.freshness,
      generation: variant.info.generation)
    stored = .variant(variant.info)
    if case .memory = variant.body { isInMemory = true }
  }

  /// Creates information about a source.
  public init(_ source: Source) {
    self.init(
      bytes: source.file.count, freshness: source.freshness, generation: source.generation)
    stored = .source(source.origin, version: source.version)
  }
}

/// The metadata of a cache entry.
public enum StoredMetadata: Hashable, Sendable {
  /// Of a variant.
  case variant(VariantInfo)
  /// Of a source: the origin's response, and `Source.version`.
  case source(OriginResponse, version: UInt64)
}

/// Computes the freshness of origin responses (RFC 9111).
public protocol FreshnessPolicy: Sendable {
  /// Returns the freshness of an origin's response.
  ///
  /// - Parameters:
  ///   - url: the requested URL, for rules by host.
  ///   - isAuthorized: whether the request had a client's `Authorization` field (section 3.5).
  ///   - now: the current time. `OriginResponse.exchange` tells how long ago each response was
  ///     received; one without it counts as received now.
  func freshness(
    of origin: OriginResponse, from url: SourceURL, isAuthorized: Bool, at now: Moment
  ) -> Freshness
  /// Returns which rule decides the lifetime of an origin's response: the field with its section of
  /// an RFC, or the key of the configuration.
  func rule(of origin: OriginResponse, from url: SourceURL, at now: Moment) -> String
}

/// Who asks the disk tier to store a variant, and how often.
public enum VariantDemand: Hashable, Sendable {
  /// A request in the operator's vocabulary: a signed URL, a preset, a prefetch. The disk tier
  /// stores the variant at once.
  case vouched
  /// A free-form request (`LoadOptions.isFreeForm`), the first for its key that is known.
  case first
  /// A free-form request for a key that was asked for before.
  case repeated
  /// No request: the variant replaces a stored one, and keeps its place among the free-form ones.
  case replacement
}

/// The answer of the disk tier to a variant.
public enum StoreOutcome: Hashable, Sendable {
  /// The variant is readable at once, and written in the background.
  case stored
  /// The variant is stored if its key is asked for again.
  case deferred
  /// The tier is disabled or full, or the variant is too large or purged.
  case refused
}
