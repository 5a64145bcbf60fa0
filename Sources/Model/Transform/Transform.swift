// Transform: all parameters that determine the bytes of a variant.

/// The operations to apply to a source: the `/image` parameters that change the output's bytes,
/// with their defaults. Equal transforms produce equal bytes.
public struct Transform: Hashable, Sendable {
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
  /// A rotation after the EXIF orientation and before `crop`.
  public var rotation: Rotation = .none
  /// A mirroring after the rotation and before `crop`.
  public var flip: Flip = .none
  /// The region to use, in source pixels after rotation. Parts outside of the image are ignored.
  public var crop: PixelArea?
  /// The maximum difference (of 255) from the top left pixel at which edges are trimmed, after
  /// `crop`; `nil`: no trimming.
  public var trim: Int?
  /// Whether the output may have more pixels than the source.
  public var enlarge = false
  /// The output format. `nil` selects the first of `accepted` that can represent the image,
  /// otherwise PNG for alpha, GIF for animation, and JPEG.
  public var format: ImageFormat?
  /// The formats that the client accepts besides JPEG, PNG and GIF, the preferred first. Ignored if
  /// `format` is set.
  public var accepted: [ImageFormat] = []
  /// Lossy quality, 1–100; `nil`: that of `qualities`.
  public var quality: Int?
  /// Lossy quality by format where `quality` does not say: the operator's choice.
  public var qualities = FormatQualities()
  /// Most bytes of the result: quality, then size give way (SDWebImage's encodeMaxFileSize).
  public var maxBytes: Int?
  /// The colour to flatten alpha onto if the output has none, and the padding of `contain`.
  public var background: Color = .white
  /// The maximum decoded size in bytes, at 4 bytes per pixel. Larger outputs are scaled down
  /// (SDWebImage's ScaleDownLargeImages).
  public var limitBytes = Transform.defaultLimitBytes
  /// The only frame to use of an animation, from 0; `nil`: all frames.
  public var frame: Int?
  /// Whether an animation stays animated.
  public var isAnimated = true
  /// Whether to strip Exif, XMP and IPTC.
  public var stripsMetadata = true
  /// The effects to apply after resizing.
  public var effects = Effects()
  /// The watermark to composite over the result.
  public var watermark: Watermark?
  /// The kind of output.
  public var product: Product = .image
  /// Whether the output can be shown while it arrives: interlaced, or the source's own bytes if
  /// suitable (SDWebImage's ProgressiveDownload).
  public var progressive = false

  /// 60 MiB, SDWebImage's default: 15,728,640 pixels.
  public static let defaultLimitBytes = 62_914_560
  /// The range of `scale`, without its lower bound.
  public static let scaleRange = 0.0...10.0
  /// The range of `w` and `h`, in points.
  public static let sideRange = 1...65_535
  /// The range of each number of `crop`. The upper bound is libvips's longest side
  /// (`VIPS_MAX_COORD`).
  public static let cropRange = 0...10_000_000
  /// The range of `trim`.
  public static let trimRange = 1...255
  /// The range of `quality`.
  public static let qualityRange = 1...100

  /// Creates a transform that only applies the orientation, converts the colour space, and scales
  /// down images that are too large.
  public init() {}

  /// The canonical text: parameters in a fixed order, without defaults. Equivalent transforms have
  /// the same text.
  ///
  /// It is part of the keys on disk: changing the text of an existing parameter orphans cached
  /// entries.
  public var canonicalText: String {
    var text = ""
    func add(_ name: String, _ value: String) {
      if !text.isEmpty { text += "&" }
      text += name + "=" + value
    }
    if let scale { add("scale", "\(scale)") }
    if let width { add("w", "\(width)") }
    if let height { add("h", "\(height)") }
    if fit != .inside { add("fit", fit.rawValue) }
    if position != .center { add("position", position.rawValue) }
    if enlarge { add("enlarge", "1") }
    if let format { add("format", format.rawValue) }
    if let quality, quality != format?.defaultQuality { add("quality", "\(quality)") }
    // Compared with the contract's numbers, which never change: a key of other qualities is another key.
    if let text = qualitiesText { add("qualities", text) }
    if background != .white { add("background", background.hexadecimal) }
    if limitBytes != Self.defaultLimitBytes { add("limitbytes", "\(limitBytes)") }
    if let frame { add("frame", "\(frame)") }
    if progressive { add("progressive", "1") }
    if let focalPoint { add("focus", "\(focalPoint.x),\(focalPoint.y)") }
    if rotation != .none { add("rotate", "\(rotation.rawValue)") }
    if flip != .none { add("flip", flip.rawValue) }
    if let crop { add("crop", crop.description) }
    if let trim { add("trim", "\(trim)") }
    if format == nil, !accepted.isEmpty {
      add("auto", accepted.map(\.rawValue).joined(separator: ","))
    }
    if let maxBytes { add("maxbytes", "\(maxBytes)") }
    if !isAnimated { add("animated", "0") }
    if !stripsMetadata { add("strip", "0") }
    effects.addText(add)
    product.addText(add)
    watermark?.addText(add)
    return text
  }

  /// The operator's qualities as far as the result may depend on them.
  private var qualitiesText: String? {
    guard quality == nil, product == .image, qualities != FormatQualities() else { return nil }
    return qualities.text(of: format.map { [$0] } ?? accepted + [.jpeg])
  }
}

extension Effects {
  fileprivate func addText(_ add: (String, String) -> Void) {
    if let blur { add("blur", "\(blur)") }
    if let sharpen { add("sharpen", "\(sharpen)") }
    switch radius {
    case .points(let points): add("radius", "\(points)")
    case .maximum: add("radius", "max")
    case nil: break
    }
    if let tint { add("tint", tint.hexadecimal) }
    if isGrayscale { add("grayscale", "1") }
    if brightness != 1 { add("brightness", "\(brightness)") }
    if saturation != 1 { add("saturation", "\(saturation)") }
  }
}

extension Product {
  fileprivate func addText(_ add: (String, String) -> Void) {
    switch self {
    case .image: break
    case .info(let kind):
      add("info", "1")
      if let kind { add("placeholder", kind.rawValue) }
    case .placeholder(let kind): add("placeholder", kind.rawValue)
    }
  }
}
