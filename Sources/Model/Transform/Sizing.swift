// Sizing: the size of a result, and how the image is placed in it.

/// The size of a result, and how the image is placed in it.
public struct Sizing: Hashable, Sendable {
  /// Output pixels per point, in (0, 10]; `nil`: the density of the source.
  public var scale: Double?
  /// The width of the box in points, at least 1.
  public var width: Int?
  /// The height of the box in points, at least 1.
  public var height: Int?
  /// The width of the box in per cent of the image's, in place of `width`; above 0.
  public var widthShare: Double?
  /// The height of the box in per cent of the image's, in place of `height`.
  public var heightShare: Double?
  /// Whether the sides change places if the image is high and the box wide, or the other way round
  /// (thumbor's `adaptive-`).
  public var adapts = false
  /// The side that is not given, as a ratio of width to height; without any side, the largest box
  /// of this shape in the source. Both sides together take precedence.
  public var aspectRatio: AspectRatio?
  /// The least width of the image in points, for which it grows also without `enlarge`. What then
  /// exceeds the box is cropped, but for `outside`; `contain` ignores it (imgproxy's `min-width`).
  public var minWidth: Int?
  /// The least height, likewise.
  public var minHeight: Int?
  /// How the image is placed in the box.
  public var fit: Fit = .inside
  /// What the result is extended to where it is smaller.
  public var extend: Extension?
  /// The degrees by which the result turns clockwise before its padding, below 360, and grows. No
  /// quarters: these are `Selection.rotation`.
  public var angle = 0.0
  /// What is added around the result, in points.
  public var padding = Edges()
  /// Which part `cover` keeps, and where `contain` places the image.
  public var position: Position = .center
  /// How far from `position` that is; without effect on a focal point and smart positions.
  public var offset = Offset()
  /// The focal point, which takes precedence over `position`.
  public var focalPoint: FocalPoint?
  /// Whether the output may have more pixels than the source.
  public var enlarge = false
  /// The maximum decoded size in bytes, at 4 bytes per pixel. Larger outputs are scaled down
  /// (SDWebImage's ScaleDownLargeImages).
  public var limitBytes = Sizing.defaultLimitBytes

  /// The longest side of the result in pixels, to which it shrinks with what is around it
  /// (imgproxy's `max_result_dimension`); `nil`: any.
  public var limitSide: Int?

  /// The parameters that may give an image more pixels than its source has.
  public static let enlarging: Set<String> = ["enlarge", "min-w", "min-h"]
  /// 60 MiB, SDWebImage's default: 15,728,640 pixels.
  public static let defaultLimitBytes = 62_914_560
  /// The range of `scale`, without its lower bound.
  public static let scaleRange = 0.0...10.0
  /// The range of `width` and `height`, in points.
  public static let sideRange = 1...65_535

  /// Creates the sizing that only scales down images that are too large.
  public init() {}

  /// Whether the fit neither crops, pads nor stretches.
  public var keepsShape: Bool {
    (fit == .inside || fit == .outside) && !hasLeastSide && !isExtended && isOfBox
  }

  /// Whether the box alone, as it is given, decides about the size.
  public var isOfBox: Bool {
    limitSide == nil && widthShare == nil && heightShare == nil && !adapts
  }

  /// Returns the sizing for an image, with sides in place of shares.
  func absolute(in size: PixelSize) -> Sizing {
    guard widthShare != nil || heightShare != nil || adapts else { return self }
    func side(_ share: Double?, of side: Int) -> Int? {
      share.map { max(1, Int((Double(side) * $0 / 100).rounded())) }
    }
    var sizing = self
    sizing.width = side(widthShare, of: size.width) ?? width
    sizing.height = side(heightShare, of: size.height) ?? height
    if adapts, let width = sizing.width, let height = sizing.height,
      (width > height && size.width < size.height) || (width < height && size.width > size.height)
    {
      (sizing.width, sizing.height) = (height, width)
    }
    return sizing
  }

  /// Whether a result of the source's size has its pixels: nothing is added around them, and none
  /// grew to be cropped.
  public var addsNothing: Bool { padding == Edges() && angle == 0 && !hasLeastSide }

  /// Whether something may be added around the image.
  public var isExtended: Bool { extend != nil || padding != Edges() || angle != 0 }

  /// Whether the image has a least width or height.
  public var hasLeastSide: Bool { minWidth != nil || minHeight != nil }
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
    side(
      "w", "Width of the box; auto: the width that the client's page has for it", \.width,
      \.widthShare),
    side("h", "Height of the box", \.height, \.heightShare),
    TransformParameter(
      "ar", .ratio, in: .size,
      "Width to height, such as 16:9: gives the side that is missing"
    ) { $1(&$0.transform.sizing.aspectRatio) },
    TransformParameter(
      "swap", .flag, in: .size,
      "Let width and height change places for an image that is not as wide or high as the box"
    ) { $1(&$0.transform.sizing.adapts) },
    TransformParameter(
      "min-w", .whole(sideRange, unit: "points"), in: .size,
      "Least width, for which the image grows"
    ) { $1(&$0.transform.sizing.minWidth) },
    TransformParameter(
      "min-h", .whole(sideRange, unit: "points"), in: .size,
      "Least height, for which the image grows"
    ) { $1(&$0.transform.sizing.minHeight) },
    TransformParameter(
      "fit", .names(Fit.allCases), in: .size, isPlain: true,
      "Inside the box, around it, fill and crop, fit and pad, or stretch"
    ) { $1(&$0.transform.sizing.fit) },
    TransformParameter(
      "extend", .names(Extension.allCases), in: .size,
      "With the background up to the box, or to its aspect ratio"
    ) { $1(&$0.transform.sizing.extend) },
    TransformParameter(
      "pad", .edges, in: .size,
      "Edges around the result: all, or top,right,bottom,left"
    ) { $1(&$0.transform.sizing.padding) },
    position,
    TransformParameter(
      "offset", .offset, in: .size,
      "How far inward from the position: x,y in points, or shares like 0.1"
    ) { $1(&$0.transform.sizing.offset) },
    TransformParameter(
      "enlarge", .flag, in: .size,
      "Allow more pixels than the source has"
    ) { $1(&$0.transform.sizing.enlarge) },
    TransformParameter(
      "limitside", .whole(sideRange, unit: "pixels"), in: .size,
      "Longest side, to which the result is scaled down with what is around it"
    ) { $1(&$0.transform.sizing.limitSide) },
    TransformParameter(
      "limitbytes", .whole(1...Int.max, unit: "bytes"),
      in: .size, "Decoded size above which the result is scaled down"
    ) { $1(&$0.transform.sizing.limitBytes) },
  ]

  /// A side in points, or a share of the image's in per cent.
  private static func side(
    _ name: String, _ help: String, _ points: WritableKeyPath<Sizing, Int?> & Sendable,
    _ share: WritableKeyPath<Sizing, Double?> & Sendable
  ) -> TransformParameter {
    TransformParameter(
      name,
      AllowedValues(
        text: AllowedValues.whole(sideRange, unit: "points").text
          + ", or per cent of the image's such as 50%",
        numbers: .whole(sideRange), unit: "points"),
      in: .size, isPlain: true, help,
      read: { given, draft in
        guard given.text.hasSuffix("%") else {
          draft.transform.sizing[keyPath: points] = given.whole(in: sideRange)
          return draft.transform.sizing[keyPath: points] != nil
        }
        let found = given.part(String(given.text.dropLast())).decimal(in: 0...10_000)
        draft.transform.sizing[keyPath: share] = found.flatMap { $0 > 0 ? $0 : nil }
        return draft.transform.sizing[keyPath: share] != nil
      },
      text: { draft in
        let sizing = draft.transform.sizing
        return sizing[keyPath: points].map { "\($0)" }
          ?? sizing[keyPath: share].map { ParameterText.of($0) + "%" }
      })
  }

  /// A named position, or a focal point.
  private static let position: TransformParameter = {
    let names = Position.allCases.map(\.rawValue)
    let standard = Sizing().position
    return TransformParameter(
      "position",
      AllowedValues(
        text: "one of " + names.joined(separator: ", ")
          + ", or x,y: two numbers from 0 to 1, or whole pixels such as 120px,80px",
        names: names, form: .point),
      in: .size, isPlain: true, standard: standard.rawValue,
      "The part that cover keeps, or the place in contain: a name, or a focal point x,y from 0 to 1",
      read: { given, draft in
        if let position = Position(rawValue: given.text) {
          draft.transform.sizing.position = position
          return true
        }
        let parts = given.parts(2) ?? []
        let shares = parts.compactMap { $0.decimal(in: 0...1) }
        let pixels = parts.compactMap { part in
          part.text.hasSuffix("px")
            ? part.part(String(part.text.dropLast(2))).whole(in: Selection.cropRange) : nil
        }
        guard let x = shares.first ?? pixels.first.map(Double.init),
          shares.count + pixels.count == 2,
          shares.isEmpty || pixels.isEmpty, let y = shares.last ?? pixels.last.map(Double.init)
        else { return false }
        draft.transform.sizing.focalPoint = FocalPoint(x: x, y: y, isInPixels: shares.isEmpty)
        return true
      },
      text: { draft in
        let sizing = draft.transform.sizing
        if let point = sizing.focalPoint {
          return [point.x, point.y].map { ParameterText.of($0) + (point.isInPixels ? "px" : "") }
            .joined(separator: ",")
        }
        return sizing.position == standard ? nil : sizing.position.rawValue
      })
  }()
}
