// LoadOptions: how a request wants to be served. No part of what its answer is kept under.

/// Which kept answers a request may have.
public enum CacheUse: String, Hashable, Sendable, CaseIterable {
  /// Whatever is fresh.
  case normal
  /// Only what is kept; the network is left alone (SDWebImage's FromCacheOnly, RFC 9111's `only-if-cached`).
  case only
  /// None; what is loaded is kept (FromLoaderOnly).
  case bypass
  /// What the origin says is still right (RefreshCached, RFC 9111's `no-cache`).
  case refresh
}

/// Which tiers may keep an answer (SDImageCacheType).
public struct StoreTiers: OptionSet, Hashable, Sendable {
  /// The bits.
  public let rawValue: UInt8

  /// A set from its bits.
  public init(rawValue: UInt8) { self.rawValue = rawValue }

  /// The memory tier.
  public static let memory = StoreTiers(rawValue: 1)
  /// The disk tier, for variant and source.
  public static let disk = StoreTiers(rawValue: 2)
  /// Both.
  public static let all: StoreTiers = [.memory, .disk]
}

/// A place in the queues; each goes before all of the ones below it.
public enum LoadPriority: String, Hashable, Comparable, Sendable, CaseIterable {
  /// SDWebImageLowPriority: prefetching.
  case low
  /// Everything else.
  case normal
  /// SDWebImageHighPriority.
  case high

  /// Less goes later.
  public static func < (left: LoadPriority, right: LoadPriority) -> Bool {
    left.rank < right.rank
  }

  /// 0 to 2.
  public var rank: Int {
    switch self {
    case .low: 0
    case .normal: 1
    case .high: 2
    }
  }
}

/// What a request demands of a kept answer's age (RFC 9111, section 5.2.1), in seconds; `nil` where it demands nothing.
public struct AgeDemands: Hashable, Sendable {
  /// `max-age`: no older than this.
  public var maxAge: Int?
  /// `max-stale`: stale for up to this long will do; `Int.max` for a directive without a value.
  public var maxStale: Int?
  /// `min-fresh`: fresh for at least this long from now.
  public var minFresh: Int?

  /// No demands.
  public init() {}
}

/// How a request wants to be served, from its parameters and its `Cache-Control` field.
public struct LoadOptions: Hashable, Sendable {
  /// Which kept answers it may have.
  public var cache = CacheUse.normal
  /// What it demands of their age.
  public var age = AgeDemands()
  /// Which tiers may keep the answer.
  public var store = StoreTiers.all
  /// Whether it is tried although it failed before (SDWebImageRetryFailed).
  public var retriesFailed = false
  /// Its place in the queues.
  public var priority = LoadPriority.normal
  /// Whether the work is done to its end though the client goes (ContinueInBackground).
  public var isDetached = false
  /// Whether it is to renew what was served stale, the manager's own or one that waits for that: nothing stale will do.
  public var isRevalidation = false
  /// Whether an AVIF is waited for though another format would be quicker: the manager's own request behind such an answer.
  public var awaitsAVIF = false
  /// The servers that the request came through, which origins are told of.
  public var trail = ServerTrail()

  /// The defaults.
  public init() {}
}
