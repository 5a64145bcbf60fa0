// DiskSettings: the keys `disk.…`: the disk tier.

/// The settings of the disk tier, `disk.…`.
public struct DiskSettings: Hashable, Sendable {
  /// The time from which an entry's age counts (SDImageCacheConfigExpireType).
  public enum ExpireType: String, CaseIterable, Hashable, Sendable {
    /// The last access: SDWebImage's default since 5.20.
    case access
    /// The last write. A revalidation writes the entry again.
    case modification
    /// The first write under this key. Replacing the entry keeps this time.
    case creation
  }

  /// When a free-form variant (`LoadOptions.isFreeForm`) is written. Others are written at once.
  public enum Admission: String, CaseIterable, Hashable, Sendable {
    /// At once while the variants' share has room, otherwise at the second request for its key.
    /// There is room up to the fraction that a clean leaves (`cleanFraction`).
    case auto
    /// At once.
    case always
    /// At the second request for its key.
    case secondRequest = "second_request"
  }

  /// The cache folder, created if needed.
  public var path = ".cache/pictor"
  /// Maximum bytes as `du` counts them, folders included; 0 disables the tier.
  public var limit = 10 << 30
  /// Maximum entries, each with an inode and a record of the in-memory index; 0: no limit.
  public var countLimit = 1_000_000
  /// The sources' share of both limits, 0.01 to 0.99. Variants have the rest.
  public var sourceShare = 0.5
  /// When a free-form variant is written.
  public var admission = Admission.auto
  /// Maximum number of free-form variants of one source, 0–1,000; beyond it the one stored first is
  /// removed. 0 is no limit.
  public var variantsPerSource = 64
  /// Maximum age of an entry (SDWebImage's one week); `nil`: no limit.
  public var maximumAge: Duration? = .seconds(7 * 86_400)
  /// The time from which the age counts.
  public var expireBy = ExpireType.access
  /// The interval between two regular cleans.
  public var cleanInterval = Duration.seconds(600)
  /// The fraction of a share that is left after an eviction, 0.1 to 0.95; more than 0.9 counts as
  /// 0.9. The default is SDWebImage's half.
  public var cleanFraction = 0.5
  /// Maximum size in bytes of a variant that is read into memory. Larger variants are sent from
  /// their file.
  public var promotionThreshold = 1 << 20

  /// Creates the default settings.
  public init() {}
}
