// FleetFigures: the figures of what machines share by Redis.

/// Figures of a machine in a fleet.
public struct FleetFigures: Codable, Hashable, Sendable {
  /// Whether the connections for commands and for the purge stream are ready: their breakers are closed.
  public var isConnected = false
  /// Commands sent to Redis, besides those of the reader of the purge stream.
  public var commands = 0
  /// Commands that were not sent because Redis was away or too many waited.
  public var unavailable = 0
  /// Commands without a reply in time.
  public var timedOut = 0
  /// Error replies of Redis.
  public var errors = 0
  /// Connections that failed.
  public var failures = 0
  /// Variants found in the shared tier.
  public var hits = 0
  /// Variants that the shared tier does not have.
  public var misses = 0
  /// Entries of the shared tier that are purged, damaged or of another version.
  public var refused = 0
  /// Variants written to the shared tier.
  public var stores = 0
  /// Variants that were not written: the queue was full, or Redis was away or full.
  public var dropped = 0
  /// Variants that wait to be written.
  public var storesWaiting = 0
  /// Purges of this machine that are in the stream.
  public var purgesPublished = 0
  /// Purges of other machines that were applied here.
  public var purgesApplied = 0
  /// Purges of this machine that wait for Redis.
  public var purgesWaiting = 0
  /// Seconds since the purge stream was last read to its end; -1 if it never was.
  public var positionAgeSeconds = -1.0
  /// The figures of the bucket; `nil` without one.
  public var bucket: BucketFigures?

  /// Creates figures of zero.
  public init() {}

  enum CodingKeys: String, CodingKey {
    case commands, unavailable, errors, failures, hits, misses, refused, stores, dropped
    case storesWaiting = "stores_waiting"
    case isConnected = "connected"
    case timedOut = "timed_out"
    case purgesPublished = "purges_published"
    case purgesApplied = "purges_applied"
    case purgesWaiting = "purges_waiting"
    case positionAgeSeconds = "position_age_seconds"
    case bucket = "s3"
  }
}
