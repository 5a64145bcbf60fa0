// Product: what can be made of a source: an image, its description, or something to show until the image is there.

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

/// What is made of a source.
public enum Product: Hashable, Sendable {
  /// The image.
  case image
  /// Its description in JSON, with a placeholder in it where one is named.
  case info(PlaceholderKind?)
  /// A tiny image that can be shown until the image is there.
  case placeholder(PlaceholderKind)
}
