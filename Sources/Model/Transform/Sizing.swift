// Sizing: the size of a result, and how the image is placed in it.

/// The size of a result, and how the image is placed in it.
public struct Sizing: Hashable, Sendable {
  /// Output pixels per point, in (0, 10]; `nil`: the density of the source.
  public var scale: Double?
  /// The width of the box in points, at least 1.
  public var width: Int?
  /// The height of the box in points, at least 1.
  public var height: Int?
  /// How the image is placed in the box.
  public var fit: Fit = .inside
  /// Which part `cover` keeps, and where `contain` places the image.
  public var position: Position = .center
  /// The focal point, which takes precedence over `position`.
  public var focalPoint: FocalPoint?
  /// Whether the output may have more pixels than the source.
  public var enlarge = false
  /// The maximum decoded size in bytes, at 4 bytes per pixel. Larger outputs are scaled down
  /// (SDWebImage's ScaleDownLargeImages).
  public var limitBytes = Sizing.defaultLimitBytes

  /// 60 MiB, SDWebImage's default: 15,728,640 pixels.
  public static let defaultLimitBytes = 62_914_560
  /// The range of `scale`, without its lower bound.
  public static let scaleRange = 0.0...10.0
  /// The range of `width` and `height`, in points.
  public static let sideRange = 1...65_535

  /// Creates the sizing that only scales down images that are too large.
  public init() {}

  /// Whether the fit neither crops, pads nor stretches.
  public var keepsShape: Bool { fit == .inside || fit == .outside }
}
