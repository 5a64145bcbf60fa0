// DiskTierConfiguration: the settings of the disk tier.

/// The settings of the disk tier.
public struct DiskTierConfiguration: Sendable {
  /// The time from which an entry's age counts (SDImageCacheConfigExpireType).
  public enum ExpireType: String, Sendable {
    /// The last access: SDWebImage's default since 5.20.
    case access
    /// The last write. A revalidation writes the entry again.
    case modification
    /// The first write under this key. Replacing the entry keeps this time.
    case creation
  }

  /// The cache folder, created if needed. `nil` disables the tier.
  public var path: String?
  /// Maximum size in bytes as `du` counts them, folders included. 0 disables the tier.
  public var limit = 10 << 30
  /// Maximum number of entries. Each takes an inode and a record of the in-memory index. 0 means no
  /// limit.
  public var countLimit = 1_000_000
  /// The sources' share of both limits, 0 to 1. Variants have the rest.
  public var sourceShare = 0.5
  /// Maximum age of an entry in seconds. A negative value means no limit. The default is
  /// SDWebImage's one week.
  public var maximumAge = 604_800
  /// The time from which the age counts.
  public var expireBy = ExpireType.access
  /// The fraction of a share that is left after an eviction, 0 to 0.9. The default is SDWebImage's
  /// half.
  public var cleanFraction = 0.5
  /// The interval between two regular cleans.
  public var cleanInterval: Duration = .seconds(600)
  /// Maximum size in bytes of a variant that is read into memory. Larger variants are sent from
  /// their file.
  public var promotionThreshold = 1 << 20
  /// Maximum bytes of pending writes. Entries beyond it are not stored.
  public var writeQueueLimit = 64 << 20
  /// Maximum number of queued reads. Look-ups beyond it are misses.
  public var readQueueLimit = 4_096
  /// Deadline of a read. A later answer is a miss.
  public var readTimeout: Duration = .seconds(10)
  /// Number of disk threads, at least 2. One of them is always free for reads.
  public var threads = 3

  /// Creates the default settings for a folder.
  public init(path: String?) { self.path = path }
}
