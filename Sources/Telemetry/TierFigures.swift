// TierFigures: what /stats shows of the cache's tiers.

/// What one kind of entry has of a tier.
public struct ShareFigures: Codable, Hashable, Sendable {
  /// Entries kept now, those being written included.
  public var entries: Int
  /// Bytes they take, folders included.
  public var bytes: Int
  /// Most bytes.
  public var limit: Int
  /// Most entries; 0: no limit.
  public var countLimit: Int

  /// All of it.
  public init(entries: Int, bytes: Int, limit: Int, countLimit: Int) {
    (self.entries, self.bytes, self.limit) = (entries, bytes, limit)
    self.countLimit = countLimit
  }

  enum CodingKeys: String, CodingKey {
    case entries, bytes, limit
    case countLimit = "count_limit"
  }
}

/// One tier of the cache.
public struct TierFigures: Codable, Hashable, Sendable {
  /// Look-ups that found what they looked for.
  public var hits = 0
  /// Look-ups that did not.
  public var misses = 0
  /// Hits ÷ look-ups, 0 before the first.
  public var hitRatio = 0.0
  /// Entries kept now.
  public var entries = 0
  /// Bytes kept now, overhead included.
  public var bytes = 0
  /// The limit in bytes.
  public var limit = 0
  /// Entries ever stored.
  public var stores = 0
  /// Entries removed to stay below the limit.
  public var evictions = 0
  /// Entries removed because they were too old.
  public var expirations = 0
  /// Entries whose times were still to come, because the clock was set back, and count from now; always 0 in memory.
  public var redated = 0
  /// Damaged entries found and removed; always 0 in memory.
  public var damaged = 0
  /// Entries removed because they were purged or the tier was emptied, each when it was found.
  public var purged = 0
  /// Purges that are still being carried out; always 0 in memory.
  public var purgesPending = 0
  /// Entries not kept because the tier could not: full queue, full disk, no permission.
  public var failures = 0
  /// How long a look-up took that found something.
  public var latency: LatencyFigures?
  /// What variants have of it; absent in memory, where there is nothing else.
  public var variants: ShareFigures?
  /// What sources have of it.
  public var sources: ShareFigures?
  /// How the tier gives way while memory is short; absent on disk, and where nobody looks for it.
  public var pressure: PressureFigures?

  /// Nothing yet.
  public init() {}

  enum CodingKeys: String, CodingKey {
    case hits, misses, entries, bytes, limit, stores, evictions, expirations, redated, damaged
    case purged, failures, variants, sources
    case hitRatio = "hit_ratio"
    case purgesPending = "purges_pending"
    case latency, pressure
  }
}

/// The memory tier while memory is short.
public struct PressureFigures: Codable, Hashable, Sendable {
  /// Whether it is short now, or has been until a moment ago.
  public var isActive: Bool
  /// How often that began.
  public var warnings: Int
  /// Entries removed for it.
  public var evictions: Int
  /// The tier's limit at the moment, in bytes.
  public var limit: Int
  /// Memory in use that the kernel cannot take back by itself ÷ the control group's limit; absent where it has none.
  public var share: Double?

  /// All of it.
  public init(isActive: Bool, warnings: Int, evictions: Int, limit: Int, share: Double?) {
    (self.isActive, self.warnings, self.evictions) = (isActive, warnings, evictions)
    (self.limit, self.share) = (limit, share)
  }

  enum CodingKeys: String, CodingKey {
    case isActive = "active"
    case warnings, evictions, limit, share
  }
}
