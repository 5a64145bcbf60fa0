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
  public var leavesFormatOpen: Bool { product == .image && output.format == nil }
}
