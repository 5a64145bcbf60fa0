// Effects: the effects applied to pixels after resizing (SDImageTransformer).

/// The radius of rounded corners.
public enum CornerRadius: Hashable, Sendable {
  /// A radius in points, at least 1. Values above half of the shorter side have no further effect.
  case points(Int)
  /// Half of the shorter side, which turns a square into a circle.
  case maximum

  /// The range of `points`.
  public static let pointRange = 1...65_535
}

/// The effects of a transform, in the order in which they are applied.
public struct Effects: Hashable, Sendable {
  /// The sigma of a Gaussian blur, in output pixels.
  public var blur: Double?
  /// The sigma of an unsharp mask on the lightness, in output pixels (libvips's `sharpen`).
  public var sharpen: Double?
  /// Rounded corners; the removed area is transparent.
  public var radius: CornerRadius?
  /// A colour composited over all pixels with its alpha. The image's alpha stays
  /// (SDImageTintTransformer).
  public var tint: Color?
  /// Whether to remove all colour and keep the lightness (a filter in SDWebImage).
  public var isGrayscale = false
  /// The factor for the lightness, 0–10; 1 has no effect.
  public var brightness = 1.0
  /// The factor for the colourfulness, 0–10; 1 has no effect.
  public var saturation = 1.0

  /// The range of `blur`. Lower values are invisible, higher ones only cost time.
  public static let blurRange = 0.3...250.0
  /// The range of `sharpen`.
  public static let sharpenRange = 0.1...10.0
  /// The range of `brightness` and `saturation`.
  public static let factorRange = 0.0...10.0

  /// Creates an instance without effects.
  public init() {}
}

extension Effects {
  /// The parameters of effects.
  static let parameters = [
    TransformParameter(
      "blur", .decimal(blurRange, unit: "sigma"), in: .effects,
      "Gaussian blur, in pixels of the result"
    ) { $1(&$0.transform.effects.blur) },
    TransformParameter(
      "sharpen", .decimal(sharpenRange, unit: "sigma"),
      in: .effects, "Unsharp mask on the lightness"
    ) { $1(&$0.transform.effects.sharpen) },
    TransformParameter(
      "radius", .radius, in: .effects,
      "Round corners: points, or max for a circle"
    ) { $1(&$0.transform.effects.radius) },
    TransformParameter(
      "tint", .color, in: .effects,
      "A colour over the image, as strong as its alpha"
    ) { $1(&$0.transform.effects.tint) },
    TransformParameter(
      "grayscale", .flag, in: .effects,
      "Remove colour, keep lightness"
    ) { $1(&$0.transform.effects.isGrayscale) },
    TransformParameter(
      "brightness", .decimal(factorRange), in: .effects,
      "Factor of the lightness"
    ) { $1(&$0.transform.effects.brightness) },
    TransformParameter(
      "saturation", .decimal(factorRange), in: .effects,
      "Factor of the chroma"
    ) { $1(&$0.transform.effects.saturation) },
  ]
}
