// Effects: what is done to an image's pixels once it has its size (SDImageTransformer).

/// How far corners are rounded.
public enum CornerRadius: Hashable, Sendable {
  /// So many points, at least 1; at most half of the shorter side counts.
  case points(Int)
  /// Half of the shorter side: a circle of a square.
  case maximum

  /// The range of points.
  public static let pointRange = 1...65_535
}

/// Effects, in the order in which they are applied.
public struct Effects: Hashable, Sendable {
  /// Sigma of a Gaussian blur in pixels of the result.
  public var blur: Double?
  /// Sigma of an unsharp mask on the lightness, in pixels of the result (libvips's `sharpen`).
  public var sharpen: Double?
  /// Rounded corners; what is cut off is transparent.
  public var radius: CornerRadius?
  /// A colour laid over all pixels as strongly as its alpha says; the image's own alpha stays (SDImageTintTransformer).
  public var tint: Color?
  /// Without colour (SDWebImage has it as a filter): the lightness stays.
  public var isGrayscale = false
  /// What the lightness is multiplied by, 0–10; 1 changes nothing.
  public var brightness = 1.0
  /// What the colourfulness is multiplied by, 0–10; 1 changes nothing.
  public var saturation = 1.0

  /// The range of `blur`: below it nothing is to be seen, above it nothing changes any more but the time.
  public static let blurRange = 0.3...250.0
  /// The range of `sharpen`.
  public static let sharpenRange = 0.1...10.0
  /// The range of `brightness` and `saturation`.
  public static let factorRange = 0.0...10.0

  /// None.
  public init() {}
}
