// TracingFigures: the part of `/stats` about exported spans.

/// Figures of the export of spans.
public struct TracingFigures: Codable, Hashable, Sendable {
  /// Spans that the collector has accepted.
  public var exported = 0
  /// Spans that were dropped, because the queue was full.
  public var dropped = 0
  /// Spans that the collector refused.
  public var rejected = 0
  /// Spans that were given up, because the collector could not be reached in time.
  public var lost = 0
  /// Spans that are queued or being sent.
  public var waiting = 0
  /// The most spans that may be queued.
  public var limit = 0
  /// Requests to the collector that it accepted.
  public var exportsSucceeded = 0
  /// Requests to the collector that failed.
  public var exportsFailed = 0

  /// Creates figures of zero.
  public init() {}

  enum CodingKeys: String, CodingKey {
    case exported, dropped, rejected, lost, waiting, limit
    case exportsSucceeded = "exports_succeeded"
    case exportsFailed = "exports_failed"
  }
}
