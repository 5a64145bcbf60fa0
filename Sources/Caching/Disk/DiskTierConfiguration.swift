// DiskTierConfiguration: the settings of the disk tier, with its fixed limits.

import Model

/// The settings of the disk tier, with limits that operators cannot set.
@dynamicMemberLookup
public struct DiskTierConfiguration: Sendable {
  /// The keys `disk.…`.
  public var settings: DiskSettings
  /// The cache folder, created if needed. `nil` disables the tier.
  public var path: String?
  /// Maximum age of an entry in seconds. A negative value means no limit.
  public var maximumAge: Int
  /// Maximum bytes of pending writes. Entries beyond it are not stored.
  public var writeQueueLimit: Int
  /// Maximum number of queued reads. Look-ups beyond it are misses.
  public var readQueueLimit = 4_096
  /// Deadline of a read. A later answer is a miss.
  public var readTimeout: Duration = .seconds(10)
  /// Maximum number of small variants whose files stay open. The server derives it from the limit
  /// of descriptors.
  public var openFiles = 1_024
  /// Number of disk threads, at least 2. One of them is always free for reads.
  public var threads = 3

  /// Creates the configuration of a tier; the plan decides what `settings` leave open.
  public init(_ settings: DiskSettings, plan: MemoryPlan = .unlimited()) {
    self.settings = settings
    path = settings.path
    maximumAge = settings.maximumAge?.flooredSeconds ?? -1
    writeQueueLimit = plan.writeQueue
  }

  /// Creates the default configuration for a folder.
  public init(path: String?) {
    self.init(DiskSettings())
    self.path = path
  }

  /// A setting of `settings`.
  public subscript<Value>(dynamicMember path: WritableKeyPath<DiskSettings, Value>) -> Value {
    @inline(__always) get { settings[keyPath: path] }
    @inline(__always) set { settings[keyPath: path] = newValue }
  }
}
