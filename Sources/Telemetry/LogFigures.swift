// LogFigures: what /stats says of the log.

/// Lines of the log.
public struct LogFigures: Codable, Hashable, Sendable {
  /// Written.
  public var written = 0
  /// Not written, since the log was not read fast enough or could not be written to.
  public var dropped = 0
  /// Not written one by one: failures of which many are alike.
  public var summedUp = 0
  /// Bytes of lines that wait or are being written.
  public var waitingBytes = 0

  /// Nothing yet.
  public init() {}

  enum CodingKeys: String, CodingKey {
    case written, dropped
    case summedUp = "summed_up"
    case waitingBytes = "waiting_bytes"
  }
}
