// SourceAsResult: decides which requests the source itself can satisfy.

extension Transform {
  /// Whether an output of the source's size shows the whole source unchanged, except for rotation.
  public var keepsPixels: Bool {
    product == .image && crop == nil && trim == nil && frame == nil && effects == Effects()
      && watermark == nil
  }

  /// Returns whether the source's format is acceptable as output. An explicit format is always
  /// used, even if the result is larger.
  public func takes(_ source: ImageFormat) -> Bool {
    // Other formats may be animated, which their heads do not tell.
    guard isAnimated || source == .jpeg || source == .png else { return false }
    guard let format else {
      return [.jpeg, .png, .gif].contains(source) || accepted.contains(source)
    }
    return source == format
  }
}
