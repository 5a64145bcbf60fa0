// ImagingLimits: the limits for decoding, sent with every job so that workers need no
// configuration.

import Model

/// Bounds on what is decoded and on the work of encoders, from the configuration's `imaging.…` keys.
public struct ImagingLimits: Hashable, Sendable {
  /// Formats that may be decoded. Other formats fail with `unsupported_format`.
  public var formats: Set<ImageFormat> = Set(ImageFormat.inputs)
  /// Maximum pixels of a source, all frames together, according to its header.
  public var maximumPixels = 150_000_000
  /// Maximum pixels of a result.
  public var maximumResultPixels = 25_000_000
  /// Maximum frames of a source.
  public var maximumFrames = 1_000
  /// The maximum estimated processor time of a job, in seconds, all stages together.
  public var mostSeconds = 15.0
  /// The mildest damage for which a source is refused.
  public var failOn = FailOn.warning
  /// The efforts of the encoders.
  public var efforts = EncoderEfforts()

  /// Creates the default limits.
  public init() {}
}
