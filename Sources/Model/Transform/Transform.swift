// Transform: all parameters that determine the bytes of a variant, in groups.

/// The operations to apply to a source: the `/image` parameters that change the output's bytes.
/// Equal transforms produce equal bytes.
///
/// Each group is `Hashable`, and its default asks for nothing. So a decision compares whole groups,
/// and a new parameter is part of it without being named.
public struct Transform: Hashable, Sendable {
  /// The part of the source to use.
  public var selection = Selection()
  /// The size of the result, and how the image is placed in it.
  public var sizing = Sizing()
  /// The effects to apply after resizing.
  public var effects = Effects()
  /// The watermark to composite over the result.
  public var watermark: Watermark?
  /// The format of the result and how it is encoded.
  public var output = OutputOptions()
  /// The kind of output.
  public var product: Product = .image

  /// Creates a transform that only applies the orientation, converts the colour space, and scales
  /// down images that are too large.
  public init() {}

  /// Whether the result is an image without effects and without a watermark.
  public var isPlainImage: Bool {
    product == .image && effects == Effects() && watermark == nil
  }

  /// Whether the result is an image whose format the client's `Accept` may choose.
  public var leavesFormatOpen: Bool {
    product == .image && output.format == nil && !output.keepsFormat
  }
}

extension Transform {
  /// Whether an output of the source's size shows the whole source unchanged, except for rotation.
  public var keepsPixels: Bool { isPlainImage && selection.isWhole && sizing.addsNothing }

  /// Whether an output of the source's size has the stored pixels of the source.
  public var keepsStoredPixels: Bool {
    isPlainImage && selection == Selection() && sizing.addsNothing
  }

  /// Returns whether the source's format is acceptable as output. An explicit format is always
  /// used, even if the result is larger.
  public func takes(_ source: ImageFormat) -> Bool {
    // Other formats may be animated, which their heads do not tell.
    guard output.isAnimated || source == .jpeg || source == .png else { return false }
    guard let format = output.format else {
      guard !output.keepsFormat else { return source.isOutput }
      return [.jpeg, .png, .gif].contains(source) || output.accepted.contains(source)
    }
    return source == format
  }

  /// The transform of a source that is sent as it is, which has one key: what else is asked for
  /// changes nothing.
  public var passingAll: Transform {
    var passing = Transform()
    passing.output.passed = .all
    passing.output.stripsMetadata = output.stripsMetadata
    return passing
  }

  /// Whether the transform only shrinks the source, so decoding dominates its cost. An allow-list,
  /// because an unlisted parameter may be expensive.
  public var isPlainReduction: Bool {
    var plain = Transform()
    plain.sizing.scale = sizing.scale
    plain.sizing.width = sizing.width
    plain.sizing.height = sizing.height
    plain.sizing.fit = sizing.fit
    plain.output.accepted = output.accepted
    return self == plain && !mayEncodeSlowly
  }

  /// Whether nothing that the transform asks for is known to be expensive: no effects, no
  /// watermark, no limit of bytes and no slow encoder. One such variant may be large; if several
  /// take too long, their source is expensive.
  public var isUndemanding: Bool {
    isPlainImage && output.maxBytes == nil && output.format != .gif && !mayEncodeSlowly
  }

  /// Whether the encoder may be slower than most decoders.
  private var mayEncodeSlowly: Bool {
    output.isLossless || output.format?.traits.encodesSlowly ?? output.keepsFormat
      || output.accepted.contains(where: \.traits.encodesSlowly)
  }
}

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
