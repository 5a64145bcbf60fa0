// ImagingLimits: the limits for decoding, sent with every job so that workers need no
// configuration.

/// Bounds on what is decoded and on the work of encoders, from the keys `imaging.…`.
public struct ImagingLimits: Hashable, Sendable {
  /// Formats that may be decoded. Other formats fail with `unsupported_format`.
  public var formats: Set<ImageFormat>
  /// Maximum pixels of a source, all frames together, according to its header.
  public var maximumPixels: Int
  /// Maximum pixels of a result.
  public var maximumResultPixels: Int
  /// Maximum frames of a source.
  public var maximumFrames: Int
  /// The maximum estimated processor time of a job, in seconds, all stages together.
  public var maximumSeconds: Double
  /// The same without the encoding of an animation's frames and the drawing of a vector, which have
  /// limits of their own.
  public var maximumSecondsOfPixels: Double
  /// The memory of a worker, in bytes; `Int.max` without a limit. A job that is estimated far above
  /// it is not begun.
  public var maximumBytes = Int.max
  /// A job that is estimated above these bytes of memory is expensive.
  public var maximumQuickBytes = Int.max
  /// The most threads that a job may use at a time, at least 1. The result does not depend on it.
  public var maximumThreads = 1
  /// The mildest damage for which a source is refused.
  public var failOn: FailOn
  /// The efforts of the encoders.
  public var efforts: EncoderEfforts
  /// Whether a PNG of a source with a palette has a palette, too.
  public var keepsPalettes: Bool

  /// The key behind `maximumSeconds`, for errors.
  public static let timeKey = "imaging.processor_time"
  /// The key behind `maximumBytes`, for errors.
  public static let memoryKey = "imaging.worker_memory"

  /// Creates the limits; by default those of the default settings.
  public init(_ settings: ImagingSettings = ImagingSettings()) {
    formats = Set(settings.formats)
    maximumPixels = settings.maximumPixels
    maximumResultPixels = settings.maximumResultPixels
    maximumFrames = settings.maximumFrames
    // An estimate can be wrong by half. The processor time itself is the limit that counts.
    maximumSeconds = 1.5 * (settings.processorTime / .seconds(1))
    // Estimates are within a factor of two, and a machine may be slower by as much.
    maximumSecondsOfPixels = 0.4 * (settings.processorTime / .seconds(1))
    failOn = settings.failOn
    efforts = settings.efforts
    keepsPalettes = settings.keepsPalettes
  }

  /// The limits with the efforts of popular images, for the encoders that gain from them. AVIF's
  /// effort 3 saves 11 to 16 %, at a lower quality (docs/decisions/026-encoder-defaults.md).
  public var withMoreEffort: ImagingLimits {
    var limits = self
    limits.efforts.webp = EncoderEfforts.webpRange.upperBound
    limits.efforts.avif = max(efforts.avif, EncoderEfforts.popularAVIF)
    return limits
  }
}
