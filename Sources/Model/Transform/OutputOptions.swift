// OutputOptions: the format of a result and how it is encoded.

/// The format of a result and how it is encoded.
public struct OutputOptions: Hashable, Sendable {
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
  /// Whether an animation stays animated.
  public var isAnimated = true
  /// Whether to strip Exif, XMP and IPTC.
  public var stripsMetadata = true
  /// Whether the output can be shown while it arrives: interlaced, or the source's own bytes if
  /// suitable (SDWebImage's ProgressiveDownload).
  public var isProgressive = false

  /// The range of `quality`.
  public static let qualityRange = 1...100

  /// Creates the options of a request that names none.
  public init() {}

  /// Returns whether a result with these options looks the same from a variant with the options
  /// `larger` as from the source. An allow-list: an option that is not copied here must be equal.
  ///
  /// A variant with an explicit format may have lost alpha or animation, so the formats must be
  /// equal. A variant cannot bring the source's metadata.
  public func isDerivable(from larger: OutputOptions) -> Bool {
    guard stripsMetadata, larger.format == nil || larger.format == format else { return false }
    var derived = larger
    derived.format = format
    derived.accepted = accepted
    derived.quality = quality
    derived.qualities = qualities
    derived.maxBytes = maxBytes
    derived.isProgressive = isProgressive
    derived.stripsMetadata = stripsMetadata
    return self == derived
  }
}
