// Transform: everything a request says about the image it wants. Equal transforms make equal bytes.

/// What is to be made of a source: the `/image` parameters that change the result's bytes, with their defaults.
public struct Transform: Hashable, Sendable {
  /// Output pixels per image point, in (0, 10]; `nil`: the source's own density.
  public var scale: Double?
  /// Width of the box in points, at least 1.
  public var width: Int?
  /// Height of the box in points, at least 1.
  public var height: Int?
  /// How the image is placed in the box.
  public var fit: Fit = .inside
  /// Which part `cover` keeps, where `contain` puts the image.
  public var position: Position = .center
  /// Goes before `position` where it is given.
  public var focalPoint: FocalPoint?
  /// A turn on top of the EXIF orientation, before `crop`.
  public var rotation: Rotation = .none
  /// A mirroring, after the rotation and before `crop`.
  public var flip: Flip = .none
  /// The part that is used, in source pixels of the image as turned; what lies outside of it does not count.
  public var crop: PixelArea?
  /// Edges that differ from the upper left pixel by no more than so many of 255 steps are cut off, after `crop`.
  public var trim: Int?
  /// Whether there may be more pixels than the source has.
  public var enlarge = false
  /// The output format; `nil`: the first of `accepted` that can hold the result, else alpha → PNG, animation → GIF, all
  /// other → JPEG.
  public var format: ImageFormat?
  /// What the client takes beside JPEG, PNG and GIF, the best first; of meaning where `format` is `nil`.
  public var accepted: [ImageFormat] = []
  /// Lossy quality, 1–100; `nil`: that of `qualities`.
  public var quality: Int?
  /// Lossy quality by format where `quality` does not say: the operator's choice.
  public var qualities = FormatQualities()
  /// Most bytes of the result: quality, then size give way (SDWebImage's encodeMaxFileSize).
  public var maxBytes: Int?
  /// Behind alpha where the output has none, and the padding of `contain`.
  public var background: Color = .white
  /// Decoded size in bytes, at 4 a pixel, above which the result is scaled down (SDWebImage's ScaleDownLargeImages).
  public var limitBytes = Transform.defaultLimitBytes
  /// The one frame wanted of an animation, from 0; `nil`: all of them.
  public var frame: Int?
  /// Whether an animation stays one.
  public var isAnimated = true
  /// Whether Exif, XMP and IPTC are dropped.
  public var stripsMetadata = true
  /// What is done to the pixels once they have their size.
  public var effects = Effects()
  /// A second image on top.
  public var watermark: Watermark?
  /// What is to be made, if not an image like the source.
  public var product: Product = .image
  /// Whether the result is to draw while it arrives: interlaced, or the source's own bytes where they will do (SDWebImage's
  /// ProgressiveDownload).
  public var progressive = false

  /// 60 MiB, SDWebImage's default: 15,728,640 pixels.
  public static let defaultLimitBytes = 62_914_560
  /// The range of `scale`; its lower end is excluded.
  public static let scaleRange = 0.0...10.0
  /// The range of `w` and `h`, in points: libvips makes no image with a longer side.
  public static let sideRange = 1...65_535
  /// The range of the numbers of `crop`: no image of libvips's has a longer side.
  public static let cropRange = 0...10_000_000
  /// The range of `trim`.
  public static let trimRange = 1...255
  /// The range of `quality`.
  public static let qualityRange = 1...100

  /// A transform that changes nothing but the orientation, the colour space and, where too large, the size.
  public init() {}

  /// The same text for all spellings of the same wish: parameters in a fixed order, defaults left out.
  ///
  /// It is part of the keys on disk: changing the text of an existing parameter orphans what is kept.
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
