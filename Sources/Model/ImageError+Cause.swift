// ImageError+Cause: the failure below wrappers, and whether the source is at fault.

extension ImageError {
  /// The underlying failure, without the wrappers `remembered` and `ofVariant`.
  public var cause: ImageError {
    switch self {
    case .remembered(let cause, _, _, _), .ofVariant(let cause): cause.cause
    default: self
    }
  }

  /// Whether the source itself is at fault: it cannot be decoded or exceeds a limit for every
  /// variant. Failures that depend on parameters, encoders, memory or a lost worker are not the
  /// source's.
  public var isOfSource: Bool {
    switch self {
    case .undecodable, .unsupportedFormat, .unsupportedKind, .tooManyPixels, .tooManyFrames,
      .tooCostly:
      true
    default: false
    }
  }
}
