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
  /// The sources that machines share; `nil` without a store for them.
  public var sources: SharedSourceFigures?
  /// Leases of variants and sources that this machine took.
  public var leasesTaken = 0
  /// Leases that ended, or went to another machine, before the work.
  public var leasesLost = 0
  /// Leases that this machine holds.
  public var leasesHeld = 0
  /// Waits for what another machine makes or loads.
  public var leasesWaited = 0
  /// Waits that ended with it.
  public var leasesServed = 0
  /// Waits that ended without, after `fleet.lease_wait`.
  public var leasesTimedOut = 0
  /// Failed URLs that this machine told others.
  public var failedURLsShared = 0
  /// Failed URLs that it could not tell: Redis was away or full.
  public var failedURLsDropped = 0
  /// Failed URLs of other machines that were found.
  public var failedURLsFound = 0
  /// Failed URLs that were purged, damaged or of another version.
  public var failedURLsRefused = 0
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
    case commands, unavailable, errors, failures, hits, misses, refused, stores, dropped, sources
    case leasesTaken = "leases_taken"
    case leasesLost = "leases_lost"
    case leasesHeld = "leases_held"
    case leasesWaited = "leases_waited"
    case leasesServed = "leases_served"
    case leasesTimedOut = "leases_timed_out"
    case failedURLsShared = "failed_urls_shared"
    case failedURLsDropped = "failed_urls_dropped"
    case failedURLsFound = "failed_urls_found"
    case failedURLsRefused = "failed_urls_refused"
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

/// Figures of the sources that machines share.
public struct SharedSourceFigures: Codable, Hashable, Sendable {
  /// Fresh sources of other machines.
  public var hits = 0
  /// Sources that Redis or the store does not have, or that are too old.
  public var misses = 0
  /// Entries that are purged, damaged or of another version.
  public var refused = 0
  /// Sources written.
  public var stores = 0
  /// Sources that were not written: the queue was full, or Redis or the store was away or full.
  public var dropped = 0
  /// Sources that wait to be written.
  public var waiting = 0

  /// Creates figures of zero.
  public init() {}
}
