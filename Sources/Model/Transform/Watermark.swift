// Watermark: a second image that is composited over the result.

/// A watermark.
public struct Watermark: Hashable, Sendable {
  /// The URL of the watermark image.
  public let source: SourceURL
  /// The URL for cache keys: the watermark's key and the keys of variants that have the watermark.
  public let keyURL: SourceURL
  /// The placement on the result.
  public let placement: WatermarkPlacement

  /// Creates a watermark.
  ///
  /// - Parameter keyURL: the URL for cache keys; `nil`: `source`. See `CacheKeyFilter`.
  public init(
    source: SourceURL, placement: WatermarkPlacement = WatermarkPlacement(),
    keyURL: SourceURL? = nil
  ) {
    self.source = source
    self.placement = placement
    self.keyURL = keyURL ?? source
  }

  /// The cache key of the watermark's source.
  public var key: CacheKey { CacheKey(source: keyURL) }
}

/// The placement of a watermark on the result.
public struct WatermarkPlacement: Hashable, Sendable {
  /// The position; smart ones count as `center`. Ignored if the watermark repeats.
  public var position: Position = .rightBottom
  /// How far from there, in pixels of the result or shares of its sides.
  public var offset = Offset()
  /// The width as a fraction of the result's width, in (0, 1].
  ///
  /// `nil`: the watermark's own pixels, times the result's density, divided by the watermark's
  /// density (`@2x`). In either case the watermark is never larger than the result.
  public var scale: Double?
  /// The opacity, in (0, 1].
  public var opacity = 1.0
  /// The pixels per point of the watermark, in place of what its name says; `nil`: as it says.
  public var density: Double?
  /// How the watermark is tiled; `nil`: it is there once.
  public var tiling: Tiling?
  /// The space between tiles, in pixels of the result or shares of its sides.
  public var gap = Offset()

  /// Creates the default placement.
  public init() {}

  /// Where tiles are.
  public enum Tiling: String, CaseIterable, Sendable {
    /// On the whole result, from the top left corner on.
    case all = "1"
    /// In a row, through the watermark's place.
    case row = "x"
    /// In a column, through the watermark's place.
    case column = "y"
    /// On the whole result, with one at the watermark's place.
    case aligned = "xy"
  }

  /// The positions that clients may request: those that do not depend on the image's content.
  public static let positions = Position.plain
  /// The range of `scale` and `opacity`, without its lower bound.
  public static let shareRange = 0.0...1.0
}

extension WatermarkPlacement {
  /// The parameters of the placement. Tiles from the top left corner on have no position.
  static let parameters = [
    TransformParameter(
      "watermark_position", .names(positions), in: .watermark,
      "Its place", where: { $0.placement.tiling != .all }
    ) { $1(&$0.placement.position) },
    TransformParameter(
      "watermark_offset", .offset, in: .watermark,
      "How far inward from its place: x,y in pixels, or shares like 0.1",
      where: { $0.placement.tiling != .all }
    ) { $1(&$0.placement.offset) },
    TransformParameter(
      "watermark_scale", share, in: .watermark,
      "Its width as a share of the width of the result"
    ) { $1(&$0.placement.scale) },
    TransformParameter(
      "watermark_opacity", share, in: .watermark, "Its strength"
    ) { $1(&$0.placement.opacity) },
    TransformParameter(
      "watermark_density",
      .decimal(above: Sizing.scaleRange, saying: "a number above 0, at most 10"), in: .watermark,
      "Its pixels per point, in place of @2x in its name"
    ) { $1(&$0.placement.density) },
    TransformParameter(
      "watermark_repeat", tiling, in: .watermark,
      "Tiles: 1 from the top left on, or x, y and xy from its place on"
    ) { $1(&$0.placement.tiling) },
    TransformParameter(
      "watermark_gap", gap, in: .watermark,
      "Space between tiles: x,y in pixels, or shares like 0.1",
      where: { $0.placement.tiling != nil }
    ) { $1(&$0.placement.gap) },
  ]

  private static let tiling = ParameterKind<Tiling?>(
    allowed: .names(["0"] + Tiling.allCases.map(\.rawValue)),
    read: { $0.text == "0" ? .some(nil) : Tiling(rawValue: $0.text).map(Optional.some) },
    text: { $0?.rawValue })

  private static let gap = ParameterKind<Offset>(
    allowed: AllowedValues(
      text: "x,y: whole pixels, or shares from 0.0 to 1.0", form: .text),
    read: { given in
      (given.parts(2) ?? []).contains { $0.text.hasPrefix("-") }
        ? nil : ParameterKind<Offset>.offset.read(given)
    }, text: ParameterKind<Offset>.offset.text)

  /// A share of the whole.
  private static let share = ParameterKind.decimal(
    above: shareRange, saying: "a number above 0, at most 1")
}
