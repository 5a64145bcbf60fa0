// BucketFigures: the figures of the bucket that machines share.

/// Figures of the shared tier's bucket (`fleet.s3`).
public struct BucketFigures: Codable, Hashable, Sendable {
  /// Whether requests are sent: the breaker is closed.
  public var isReady = false
  /// Entries found.
  public var hits = 0
  /// Entries that the bucket does not have.
  public var misses = 0
  /// Those of `hits` that were not used: purged, expired, damaged, or of another version or epoch.
  public var refused = 0
  /// Reads without an answer: not sent, failed, or without room for the entry.
  public var unavailable = 0
  /// Reads and writes without an answer in time.
  public var timedOut = 0
  /// Reads and writes that failed at the store, those without an answer in time included.
  public var failures = 0
  /// Entries written.
  public var stores = 0
  /// Entries that were not written.
  public var dropped = 0
  /// Requests that wait to be sent.
  public var waiting = 0
  /// Bytes of the entries found and written.
  public var bytes = 0

  /// Creates figures of zero.
  public init() {}

  enum CodingKeys: String, CodingKey {
    case hits, misses, refused, unavailable, failures, stores, dropped, waiting, bytes
    case isReady = "ready"
    case timedOut = "timed_out"
  }
}
