// Product: the kinds of output: an image, a description or a placeholder.

/// A kind of placeholder.
public enum PlaceholderKind: String, CaseIterable, Sendable {
  /// A BlurHash of 4×3 components (github.com/woltapp/blurhash).
  case blurhash
  /// A ThumbHash (evanw.github.io/thumbhash).
  case thumbhash
  /// The mean colour.
  case color
  /// A low-quality image of a few pixels.
  case lqip
}

/// The output of a transform.
public enum Product: Hashable, Sendable {
  /// An image.
  case image
  /// A JSON description of the source, with a placeholder if one is named.
  case info(PlaceholderKind?)
  /// A tiny image to show while the full image loads.
  case placeholder(PlaceholderKind)
}
