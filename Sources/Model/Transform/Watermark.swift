// Watermark: a second image on top of the result.

/// A second image on top of the result.
public struct Watermark: Hashable, Sendable {
  /// Where it comes from.
  public let source: SourceURL
  /// What keys are made of, its own and those of what it is laid on.
  public let keyURL: SourceURL
  /// How it lies.
  public let placement: WatermarkPlacement

  /// A second image on top of the result.
  ///
  /// - Parameter keyURL: what keys are made of; `nil`: of `source` itself. See `CacheKeyFilter`.
  public init(
    source: SourceURL, placement: WatermarkPlacement = WatermarkPlacement(),
    keyURL: SourceURL? = nil
  ) {
    (self.source, self.placement) = (source, placement)
    self.keyURL = keyURL ?? source
  }

  /// The key that its bytes are kept under.
  public var key: CacheKey { CacheKey(source: keyURL) }
}

/// How a watermark lies on the result.
public struct WatermarkPlacement: Hashable, Sendable {
  /// Where; `entropy` and `attention` count as `center`. Of no meaning where it repeats.
  public var position: Position = .rightBottom
  /// Its width as a share of the result's, above 0, at most 1; `nil`: in its own pixels, times the result's density, divided
  /// by its own (`@2x`). Never larger than the result, either way.
  public var scale: Double?
  /// How strongly it covers, above 0, at most 1.
  public var opacity = 1.0
  /// Whether it is laid side by side over the whole result, from the upper left corner on.
  public var repeats = false

  /// The positions that a client may name: places, and nothing that depends on what is in the image.
  public static let positions = Position.allCases.filter { $0 != .entropy && $0 != .attention }
  /// The range of `scale` and `opacity`; its lower end is excluded.
  public static let shareRange = 0.0...1.0

  /// In the lower right corner.
  public init() {}
}

extension Watermark {
  /// The parameters of `Transform.canonicalText`. The URL is last, since it may hold whatever tells parameters apart.
  func addText(_ add: (String, String) -> Void) {
    // Where it repeats the position says nothing.
    let position = placement.repeats ? "repeat" : placement.position.rawValue
    add("watermark", "\(position),\(placement.opacity)")
    if let scale = placement.scale { add("watermark_scale", "\(scale)") }
    add("watermark_url", keyURL.text)
  }
}
