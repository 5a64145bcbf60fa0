// SourceAsResult: decides which requests the source itself can satisfy.

extension Transform {
  /// Whether an output of the source's size shows the whole source unchanged, except for rotation.
  public var keepsPixels: Bool { isPlainImage && selection.isWhole }

  /// Whether an output of the source's size has the stored pixels of the source.
  public var keepsStoredPixels: Bool { isPlainImage && selection == Selection() }

  /// Returns whether the source's format is acceptable as output. An explicit format is always
  /// used, even if the result is larger.
  public func takes(_ source: ImageFormat) -> Bool {
    // Other formats may be animated, which their heads do not tell.
    guard output.isAnimated || source == .jpeg || source == .png else { return false }
    guard let format = output.format else {
      return [.jpeg, .png, .gif].contains(source) || output.accepted.contains(source)
    }
    return source == format
  }
}
