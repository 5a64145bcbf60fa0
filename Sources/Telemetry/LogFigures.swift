// LogFigures: the part of `/stats` about the log.

/// Figures of the log.
public struct LogFigures: Codable, Hashable, Sendable {
  /// Lines written.
  public var written = 0
  /// Lines dropped, because the queue was full or the write failed.
  public var dropped = 0
  /// Lines summarized, because many were alike.
  public var summedUp = 0
  /// Bytes that are queued or being written.
  public var waitingBytes = 0

  /// Creates figures of zero.
  public init() {}

  /// Adds the figures of another queue.
  mutating func add(_ other: LogFigures) {
    written += other.written
    dropped += other.dropped
    summedUp += other.summedUp
    waitingBytes += other.waitingBytes
  }

  enum CodingKeys: String, CodingKey {
    case written, dropped
    case summedUp = "summed_up"
    case waitingBytes = "waiting_bytes"
  }
}
