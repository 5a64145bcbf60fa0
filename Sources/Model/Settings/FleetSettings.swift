// FleetSettings: the keys `fleet.…`: machines that share purges and variants.

/// The settings of a fleet, `fleet.…`. Without `redis` the machine is alone.
public struct FleetSettings: Hashable, Sendable {
  /// The address of Redis, or a reference to it; `nil`: no fleet.
  public var redis: SecretText?
  /// What the names of all keys in Redis begin with.
  public var keyPrefix = "pictor:"
  /// The longest wait for a reply of Redis, 1 ms to 10 s.
  public var timeout = Duration.milliseconds(50)
  /// The time after a failure in which Redis, or the bucket, is not asked.
  public var retryInterval = Duration.seconds(1)
  /// The largest variant in Redis, in bytes; 0: none.
  public var variantLimit = 256 << 10
  /// The bucket for what does not fit into Redis, `fleet.s3.…`; off without the name of a bucket.
  public var bucket = SharedBucketSettings()

  /// Creates the default settings.
  public init() {}
}

/// The settings of the shared tier's bucket, `fleet.s3.…`.
public struct SharedBucketSettings: Hashable, Sendable {
  /// Endpoint, region, addressing and credentials, as those of a bucket for sources.
  public var access = ObjectStore()
  /// The bucket's name; empty: no bucket.
  public var name = ""
  /// What the names of all objects begin with.
  public var prefix = "pictor/"
  /// The longest wait for an entry. Writes may take ten times as long.
  public var timeout = Duration.milliseconds(250)
  /// The largest entry, in bytes.
  public var entryLimit = 16 << 20
  /// A file of certificate authorities for the endpoint; empty: those of the system.
  public var caFile = ""

  /// Whether there is a bucket.
  public var isOn: Bool { !name.isEmpty }

  /// Whether a text can be a prefix: at most 256 letters, digits and characters of `-_./`, without
  /// a first `/`, empty segments, `.` and `..`. It is sent as it is, so no proxy may resolve it.
  public static func isPrefix(_ text: String) -> Bool {
    text.utf8.count <= 256 && text.isPlain(with: "-_./") && !text.hasPrefix("/")
      && !text.contains("//")
      && !text.split(separator: "/").contains { $0 == "." || $0 == ".." }
  }
}
