// SourceAsResult: which requests a source may answer as it is, or with nothing but its metadata dropped.

extension Transform {
  /// Whether a result of the source's own size shows the source, whole and unchanged, turned at most.
  public var keepsPixels: Bool {
    product == .image && crop == nil && trim == nil && frame == nil && effects == Effects()
      && watermark == nil
  }

  /// Whether a source in this format may be the answer. Who names a format gets it, however large it comes out.
  public func takes(_ source: ImageFormat) -> Bool {
    // These two may move, and their heads do not say so.
    guard isAnimated || source == .jpeg || source == .png else { return false }
    guard let format else {
      return [.jpeg, .png, .gif].contains(source) || accepted.contains(source)
    }
    return source == format
  }
}
