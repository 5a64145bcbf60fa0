// Effects: the effects applied to pixels after resizing (SDImageTransformer).

/// The radius of rounded corners.
public enum CornerRadius: Hashable, Sendable {
  /// A radius in points, at least 1. Values above half of the shorter side have no further effect.
  case points(Int)
  /// A radius for each corner in points, clockwise from the top left; 0 leaves a corner square.
  case corners([Int])
  /// Half of the shorter side, which turns a square into a circle.
  case maximum
  /// Half of each side: what is left is the ellipse in the image.
  case ellipse

  /// The range of `points`.
  public static let pointRange = 1...65_535
}

/// The effects of a transform, in the order in which they are applied.
public struct Effects: Hashable, Sendable {
  /// The sigma of a Gaussian blur, in output pixels.
  public var blur: Double?
  /// The sigma of an unsharp mask on the lightness, in output pixels (libvips's `sharpen`).
  public var sharpen: Double?
  /// The side of the squares of one colour, in output pixels.
  public var pixelate: Int?
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

  /// The degrees by which hues turn, 0–359.
  public var hue = 0
  /// How much of the colour becomes sepia, 0–1 (CSS `sepia()`).
  public var sepia = 0.0
  /// The factor for the distance from middle grey, 0–10 (CSS `contrast()`).
  public var contrast = 1.0
  /// The gamma, 0.1–10: above 1 dark values become lighter.
  public var gamma = 1.0
  /// Whether colours are inverted.
  public var isNegative = false

  /// The range of `pixelate`.
  public static let pixelateRange = 2...65_535
  /// The range of `hue`.
  public static let hueRange = 0...359
  /// The range of `gamma`.
  public static let gammaRange = 0.1...10.0
  /// The range of `blur`. Lower values are invisible, higher ones only cost time.
  public static let blurRange = 0.3...250.0
  /// The range of `sharpen`.
  public static let sharpenRange = 0.1...10.0
  /// The range of `brightness`, `saturation` and `contrast`.
  public static let factorRange = 0.0...10.0

  /// Creates an instance without effects.
  public init() {}
}

extension ParameterKind where Value == Int {
  /// Degrees, or per cent of half a turn, either way.
  fileprivate static var hue: ParameterKind {
    let degrees = whole(Effects.hueRange)
    return ParameterKind(
      allowed: AllowedValues(
        text: degrees.allowed.text + ", or from -100% to 100%, which are half a turn",
        numbers: .whole(Effects.hueRange), unit: "degrees"),
      read: { given in
        given.percent.map { (Int(($0 * 1.8).rounded()) + 360) % 360 } ?? degrees.read(given)
      }, text: degrees.text)
  }
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
      "pixelate", .whole(pixelateRange, unit: "pixels"), in: .effects,
      "Squares of one colour, in pixels of the result"
    ) { $1(&$0.transform.effects.pixelate) },
    TransformParameter(
      "radius", .radius, in: .effects,
      "Round corners: points, one or four; max for a circle; ellipse"
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
      "brightness", .factor(factorRange), in: .effects,
      "Factor of the lightness, or per cent such as -20%"
    ) { $1(&$0.transform.effects.brightness) },
    TransformParameter(
      "saturation", .factor(factorRange), in: .effects,
      "Factor of the chroma"
    ) { $1(&$0.transform.effects.saturation) },
    TransformParameter(
      "hue", .hue, in: .effects,
      "Degrees by which hues turn, or per cent of half a turn"
    ) { $1(&$0.transform.effects.hue) },
    TransformParameter(
      "sepia", .decimal(0...1), in: .effects,
      "How much of the colour becomes sepia"
    ) { $1(&$0.transform.effects.sepia) },
    TransformParameter(
      "contrast", .factor(factorRange), in: .effects,
      "Factor of the distance from middle grey"
    ) { $1(&$0.transform.effects.contrast) },
    TransformParameter(
      "gamma", .decimal(gammaRange), in: .effects,
      "Above 1: dark values become lighter"
    ) { $1(&$0.transform.effects.gamma) },
    TransformParameter(
      "negate", .flag, in: .effects,
      "Invert colours"
    ) { $1(&$0.transform.effects.isNegative) },
  ]
}
