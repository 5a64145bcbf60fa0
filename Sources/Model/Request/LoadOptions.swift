// LoadOptions: how a request is served. Not part of the cache key.

/// How a request uses cached entries.
public enum CacheUse: String, Hashable, Sendable, CaseIterable {
  /// Uses fresh entries.
  case normal
  /// Uses only cached entries, never the network (SDWebImage's FromCacheOnly, RFC 9111's
  /// `only-if-cached`).
  case only
  /// Ignores cached entries and stores the response (FromLoaderOnly).
  case bypass
  /// Revalidates cached entries (RefreshCached, RFC 9111's `no-cache`).
  case refresh
}

/// The tiers that may store a response (SDImageCacheType).
public struct StoreTiers: OptionSet, Hashable, Sendable {
  /// The bits.
  public let rawValue: UInt8

  /// Creates a set from its bits.
  public init(rawValue: UInt8) { self.rawValue = rawValue }

  /// The memory tier.
  public static let memory = StoreTiers(rawValue: 1)
  /// The disk tier, for variants and sources.
  public static let disk = StoreTiers(rawValue: 2)
  /// Both tiers.
  public static let all: StoreTiers = [.memory, .disk]
}

/// A priority in the queues. Higher priorities go first.
public enum LoadPriority: String, RankedCases, Sendable {
  /// For prefetching (SDWebImageLowPriority).
  case low
  /// The default.
  case normal
  /// SDWebImageHighPriority.
  case high
}

/// A request's limits for the age of a cached response, in seconds (RFC 9111, section 5.2.1). `nil`
/// means no limit.
public struct AgeDemands: Hashable, Sendable {
  /// `max-age`: the maximum age.
  public var maxAge: Int?
  /// `max-stale`: the maximum staleness; `Int.max` for a directive without a value.
  public var maxStale: Int?
  /// `min-fresh`: the minimum remaining lifetime.
  public var minFresh: Int?

  /// Creates an instance without limits.
  public init() {}
}

/// How to serve a request, from its parameters and its `Cache-Control` field.
public struct LoadOptions: Hashable, Sendable {
  /// How the request uses cached entries.
  public var cache = CacheUse.normal
  /// The request's limits for the age of a cached response.
  public var age = AgeDemands()
  /// The tiers that may store the response.
  public var store = StoreTiers.all
  /// Whether the request ignores the negative cache (SDWebImageRetryFailed).
  public var retriesFailed = false
  /// The priority in the queues.
  public var priority = LoadPriority.normal
  /// Whether the work continues after the client disconnects (ContinueInBackground).
  public var isDetached = false
  /// Whether the request is or waits for a background revalidation, which no stale entry satisfies.
  public var isRevalidation = false
  /// Whether the request waits for an AVIF instead of a faster format. Set on internal requests for
  /// deferred AVIFs.
  public var awaitsAVIF = false
  /// Whether the client chose the parameters that shape the image: they are neither signed nor
  /// those of a preset or of an operator. Does not change the response, so requests that differ in
  /// it share a flight.
  public var isFreeForm = false
  /// What the client gets if the image cannot be had. The manager does not look at it, so requests
  /// that differ in it share a flight.
  public var onFailure = FailureAnswer.error
  /// What the response says to its client beside the image; likewise.
  public var presentation = Presentation()
  /// The servers that the request came through. They are forwarded to origins (RFC 8586).
  public var trail = ServerTrail()
  /// The trace that origins are told; `nil`: none. Does not change the response, so requests that
  /// differ in it share a flight.
  public var trace: TraceContext?

  /// Creates the default options.
  public init() {}
}
