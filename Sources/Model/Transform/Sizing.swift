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

extension Sizing {
  /// The parameters of the size. Clients may also have `auto` for `scale` and `w`, and a lower
  /// limit of `limitbytes`.
  static let parameters = [
    TransformParameter(
      "scale", .decimal(above: scaleRange, saying: "a number above 0, at most 10"), in: .size,
      isPlain: true,
      "Output pixels per image point, such as 2 for a dense screen; auto: the client's"
    ) { $1(&$0.transform.sizing.scale) },
    TransformParameter(
      "w", .whole(sideRange, unit: "points"), in: .size,
      isPlain: true, "Width of the box; auto: the width that the client's page has for it"
    ) { $1(&$0.transform.sizing.width) },
    TransformParameter(
      "h", .whole(sideRange, unit: "points"), in: .size,
      isPlain: true, "Height of the box"
    ) { $1(&$0.transform.sizing.height) },
    TransformParameter(
      "fit", .names(Fit.allCases), in: .size, isPlain: true,
      "Inside the box, around it, fill and crop, fit and pad, or stretch"
    ) { $1(&$0.transform.sizing.fit) },
    position,
    TransformParameter(
      "enlarge", .flag, in: .size,
      "Allow more pixels than the source has"
    ) { $1(&$0.transform.sizing.enlarge) },
    TransformParameter(
      "limitbytes", .whole(1...Int.max, unit: "bytes"),
      in: .size, "Decoded size above which the result is scaled down"
    ) { $1(&$0.transform.sizing.limitBytes) },
  ]

  /// A named position, or a focal point.
  private static let position: TransformParameter = {
    let names = Position.allCases.map(\.rawValue)
    let standard = Sizing().position
    return TransformParameter(
      "position",
      AllowedValues(
        text: "one of " + names.joined(separator: ", ") + ", or x,y: two numbers from 0 to 1",
        names: names, form: .point),
      in: .size, isPlain: true, standard: standard.rawValue,
      "The part that cover keeps, or the place in contain: a name, or a focal point x,y from 0 to 1",
      read: { given, draft in
        if let position = Position(rawValue: given.text) {
          draft.transform.sizing.position = position
          return true
        }
        let shares = given.parts(2)?.compactMap { $0.decimal(in: 0...1) } ?? []
        guard shares.count == 2 else { return false }
        draft.transform.sizing.focalPoint = FocalPoint(x: shares[0], y: shares[1])
        return true
      },
      text: { draft in
        let sizing = draft.transform.sizing
        if let point = sizing.focalPoint {
          return ParameterText.of(point.x) + "," + ParameterText.of(point.y)
        }
        return sizing.position == standard ? nil : sizing.position.rawValue
      })
  }()
}
