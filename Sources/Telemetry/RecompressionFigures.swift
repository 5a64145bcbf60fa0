// RecompressionFigures: the figures of variants that are made smaller once they are popular.

/// Figures of recompression.
public struct RecompressionFigures: Codable, Hashable, Sendable {
  /// Variants queued or being recompressed.
  public var waiting = 0
  /// Variants that became smaller.
  public var smaller = 0
  /// Variants that could not become smaller.
  public var unchanged = 0
  /// Variants whose recompression failed. They stay as they are.
  public var failed = 0
  /// The bytes of the variants in `smaller` before.
  public var bytesBefore = 0
  /// The bytes of the variants in `smaller` after.
  public var bytesAfter = 0
  /// The processor time of the workers, in seconds.
  public var processorSeconds = 0.0

  /// Creates figures of zero.
  public init() {}

  enum CodingKeys: String, CodingKey {
    case waiting, smaller, unchanged, failed
    case bytesBefore = "bytes_before"
    case bytesAfter = "bytes_after"
    case processorSeconds = "processor_seconds"
  }
}
