// FleetSettings: the keys `fleet.…`: machines that share purges and variants.

/// The settings of a fleet, `fleet.…`. Without `redis` the machine is alone.
public struct FleetSettings: Hashable, Sendable {
  /// The address of Redis, or a reference to it; `nil`: no fleet.
  public var redis: SecretText?
  /// What the names of all keys in Redis begin with.
  public var keyPrefix = "pictor:"
  /// The longest wait for a reply of Redis.
  public var timeout = Duration.milliseconds(50)
  /// The time after a failure in which Redis is not asked.
  public var retryInterval = Duration.seconds(1)
  /// The largest variant in Redis, in bytes; 0: none.
  public var variantLimit = 256 << 10
  /// Whether one machine makes a variant while the others wait for it.
  public var leases = true
  /// The longest wait for a variant that another machine makes.
  public var leaseWait = Duration.seconds(5)
  /// Whether machines share failed URLs.
  public var failures = true

  /// Creates the default settings.
  public init() {}
}
