// Product: what can be made of a source: a picture, its description, or something to show until the picture is there.

/// A kind of placeholder.
public enum PlaceholderKind: String, CaseIterable, Sendable {
  /// A BlurHash of 4×3 components (github.com/woltapp/blurhash).
  case blurhash
  /// A ThumbHash (evanw.github.io/thumbhash).
  case thumbhash
  /// The mean colour.
  case color
  /// A low-quality picture of a few pixels.
  case lqip
}

/// What is made of a source.
public enum Product: Hashable, Sendable {
  /// The picture.
  case picture
  /// Its description in JSON, with a placeholder in it where one is named.
  case info(PlaceholderKind?)
  /// A tiny picture that can be shown until the picture is there.
  case placeholder(PlaceholderKind)
}
