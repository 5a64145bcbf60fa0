// DiskTierConfiguration: what the disk tier can be told.

/// What the disk tier can be told.
public struct DiskTierConfiguration: Sendable {
  /// Which of its times an entry's age counts from (SDImageCacheConfigExpireType).
  public enum ExpireType: String, Sendable {
    /// When it was last asked for: SDWebImage's default since 5.20.
    case access
    /// When it was last written; an origin that says that it is still right has it written anew.
    case modification
    /// When something was first kept under its key, whatever has replaced it since.
    case creation
  }

  /// The folder; created where absent. `nil` turns the tier off.
  public var path: String?
  /// Most bytes used, as `du` counts them, folders included; 0 turns the tier off.
  public var limit = 10 << 30
  /// Most entries, each of which takes an inode; 0: as many as there is room for. A million are an index of 67 MB,
  /// and the inodes that ext4 makes for 16 GB.
  public var countLimit = 1_000_000
  /// What share of both limits sources have, 0 to 1; variants have the rest, and neither takes from the other.
  public var sourceShare = 0.5
  /// Seconds after which a clean removes an entry; negative: never. SDWebImage's week.
  public var maximumAge = 604_800
  /// What that age counts from.
  public var expireBy = ExpireType.access
  /// What part of a share is left after a clean that made room, 0 to 0.9; SDWebImage's half.
  public var cleanFraction = 0.5
  /// The time between two cleans that nothing else asks for.
  public var cleanInterval: Duration = .seconds(600)
  /// Variants of up to so many bytes come back in memory, larger ones as a file to be sent from.
  public var promotionThreshold = 1 << 20
  /// Most bytes that may wait to be written; what comes on top is not kept.
  public var writeQueueLimit = 64 << 20
  /// Most look-ups that may wait for the disk; what comes on top is a miss.
  public var readQueueLimit = 4_096
  /// How long a look-up may take before it is a miss.
  public var readTimeout: Duration = .seconds(10)
  /// Threads for reading and writing, at least 2: one is always left to readers.
  public var threads = 3

  /// The defaults for a folder.
  public init(path: String?) { self.path = path }
}
