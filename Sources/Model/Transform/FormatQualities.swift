// FormatQualities, EncoderEfforts: the operator's settings for encoders.

/// The default quality of each lossy format, 1–100, for requests without `quality`; at first those
/// of the HTTP interface, which are not part of cache keys.
public struct FormatQualities: Hashable, Sendable {
  /// In the order of `ImageFormat.lossy`.
  private var values = standard

  private static let standard = ImageFormat.lossy.map { $0.traits.defaultQuality ?? 0 }

  /// The quality of a format; `nil` if it has none.
  public subscript(_ format: ImageFormat) -> Int? {
    get { ImageFormat.lossy.firstIndex(of: format).map { values[$0] } }
    set {
      guard let place = ImageFormat.lossy.firstIndex(of: format), let newValue else { return }
      values[place] = newValue
    }
  }

  /// The quality of a format of `ImageFormat.lossy`.
  public subscript(lossy format: ImageFormat) -> Int {
    get { self[format] ?? 0 }
    set { self[format] = newValue }
  }

  /// Returns these qualities lowered by `amount`, each to 1 at least.
  public func lowered(by amount: Int) -> FormatQualities {
    var lower = self
    lower.values = values.map { max($0 - amount, 1) }
    return lower
  }
}

/// The effort of each encoder, on its library's scale: more effort takes longer and makes fewer
/// bytes.
///
/// Effort changes bytes but hardly what is seen, so it is not part of cache keys. Defaults are
/// chosen on curves of bytes over likeness (docs/decisions/026-encoder-defaults.md).
public struct EncoderEfforts: Hashable, Sendable {
  /// zlib's level; 0: no compression, of TIFFs neither. 9 saves 2 % of a photograph, in 8 times the
  /// time.
  public var png = 4
  /// libimagequant's effort. 7, libvips's default, takes twice the time for 1 to 2 % fewer bytes.
  public var gif = 4
  /// libwebp's effort. From 3 on it weighs choices by their cost: SSIM 0.955 instead of 0.950.
  public var webp = 3
  /// 9 minus libaom's speed. Below quality 90, colour has half the resolution.
  public var avif = 1

  /// The range of `png`.
  public static let pngRange = 0...9
  /// The range of `gif`.
  public static let gifRange = 1...10
  /// The range of `webp`.
  public static let webpRange = 0...6
  /// The range of `avif`.
  public static let avifRange = 0...9

  /// The effort of an AVIF that is encoded again because it is popular. The next one takes four
  /// times as long.
  public static let popularAVIF = 3

  /// How much lower the quality of an AVIF is with `popularAVIF`, for the same likeness as with
  /// this effort; `nil` if this effort is as high. The least means of images were 3.6 and 2.8.
  public var popularAVIFReduction: Int? {
    switch avif {
    case ...1: 3
    case 2: 2
    default: nil
    }
  }
}
