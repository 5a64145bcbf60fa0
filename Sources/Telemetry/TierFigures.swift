// TierFigures: the part of `/stats` about the cache tiers.

/// The share of a tier that one kind of entry takes.
public struct ShareFigures: Codable, Hashable, Sendable {
  /// Entries, including those being written.
  public var entries: Int
  /// Bytes, including folders.
  public var bytes: Int
  /// The maximum number of bytes.
  public var limit: Int
  /// The maximum number of entries; 0: unlimited.
  public var countLimit: Int

  /// Creates the figures.
  public init(entries: Int, bytes: Int, limit: Int, countLimit: Int) {
    self.entries = entries
    self.bytes = bytes
    self.limit = limit
    self.countLimit = countLimit
  }

  enum CodingKeys: String, CodingKey {
    case entries, bytes, limit
    case countLimit = "count_limit"
  }
}

/// Figures of a cache tier.
public struct TierFigures: Codable, Hashable, Sendable {
  /// Look-ups that found an entry; in memory, a fresh one.
  public var hits = 0
  /// Look-ups without a hit.
  public var misses = 0
  /// Hits ÷ look-ups, 0 before the first.
  public var hitRatio = 0.0
  /// Entries now; on disk also those being written, and tombstones.
  public var entries = 0
  /// Bytes stored now, including overhead.
  public var bytes = 0
  /// The configured limit in bytes; under memory pressure, `pressure.limit` is the current one.
  public var limit = 0
  /// Entries stored since the start.
  public var stores = 0
  /// Entries evicted for room or because of memory pressure.
  public var evictions = 0
  /// Entries removed because they expired; always 0 in memory.
  public var expirations = 0
  /// Entries whose times were in the future because the clock was set back, and were reset to now;
  /// always 0 in memory.
  public var redated = 0
  /// Damaged entries found and removed; always 0 in memory.
  public var damaged = 0
  /// Entries removed because of a purge or a clear, counted when found.
  public var purged = 0
  /// Purges in progress; always 0 in memory.
  public var purgesPending = 0
  /// Operations that failed or were refused: reads, writes, removals, scans, the purge journal; always 0
  /// in memory.
  public var failures = 0
  /// Variants that were not stored at their first request; always 0 in memory.
  public var deferred = 0
  /// Variants removed because their source has too many; always 0 in memory.
  public var displaced = 0
  /// Files of entries that are kept open; always 0 in memory.
  public var openFiles = 0
  /// The duration of look-ups that found an entry; absent in memory.
  public var latency: LatencyFigures?
  /// The share of variants; absent in memory, which stores nothing else.
  public var variants: ShareFigures?
  /// The share of sources; absent in memory.
  public var sources: ShareFigures?
  /// The state under memory pressure; absent on disk, and if pressure is not monitored.
  public var pressure: PressureFigures?

  /// Creates figures of zero.
  public init() {}

  enum CodingKeys: String, CodingKey {
    case hits, misses, entries, bytes, limit, stores, evictions, expirations, redated, damaged
    case purged, failures, deferred, displaced, variants, sources
    case hitRatio = "hit_ratio"
    case purgesPending = "purges_pending"
    case openFiles = "open_files"
    case latency, pressure
  }
}

/// Figures of the memory tier under memory pressure.
public struct PressureFigures: Codable, Hashable, Sendable {
  /// Whether an episode of pressure lasts: from its first sample to the first raise of the limit,
  /// after 10 to 160 s of calm.
  public var isActive: Bool
  /// Episodes since the start.
  public var warnings: Int
  /// Entries evicted because of memory pressure.
  public var evictions: Int
  /// The current limit of the tier, in bytes.
  public var limit: Int
  /// Memory in use that the kernel cannot reclaim ÷ the control group's limit; absent without a
  /// limit.
  public var share: Double?

  /// Creates the figures.
  public init(isActive: Bool, warnings: Int, evictions: Int, limit: Int, share: Double?) {
    self.isActive = isActive
    self.warnings = warnings
    self.evictions = evictions
    self.limit = limit
    self.share = share
  }

  enum CodingKeys: String, CodingKey {
    case isActive = "active"
    case warnings, evictions, limit, share
  }
}
