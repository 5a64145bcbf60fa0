// FormatQualities, EncoderEfforts: what encoders are told where a request does not say.

/// The quality of a lossy result whose request has no `quality`, by format, 1–100.
public struct FormatQualities: Hashable, Sendable {
  /// Of a JPEG.
  public var jpeg = ImageFormat.jpeg.defaultQuality ?? 0
  /// Of a WebP.
  public var webp = ImageFormat.webp.defaultQuality ?? 0
  /// Of an AVIF.
  public var avif = ImageFormat.avif.defaultQuality ?? 0
  /// Of a JPEG XL.
  public var jxl = ImageFormat.jxl.defaultQuality ?? 0

  /// Those of the contract, which stand in no key.
  public init() {}

  /// The quality of a format, `nil` for one that has none.
  public subscript(_ format: ImageFormat) -> Int? {
    switch format {
    case .jpeg: jpeg
    case .webp: webp
    case .avif: avif
    case .jxl: jxl
    default: nil
    }
  }

  /// Those of `formats` that differ from the contract's, as keys have them: `jpeg:70,webp:60`; `nil` where none does.
  func text(of formats: [ImageFormat]) -> String? {
    let differing = formats.compactMap { format in
      self[format].flatMap { $0 == format.defaultQuality ? nil : "\(format.rawValue):\($0)" }
    }
    return differing.isEmpty ? nil : differing.joined(separator: ",")
  }
}

/// How much work encoders take to make fewer bytes, each on the scale of its library.
///
/// It changes bytes and never what is to be seen by more than the library's own choice does, so it is part of no key.
public struct EncoderEfforts: Hashable, Sendable {
  /// zlib's level. Measured with all row filters tried, 300×300 RGBA: a photo in 14.4, 21.1, 47.6 and 62.8 ms and
  /// 201, 197, 195 and 194 kB at levels 3, 4, 6 and 9; a drawing in 2.8, 3.5, 4.0 and 16.1 ms and 11.1,
  /// 8.9, 9.0 and 8.5 kB. A fixed filter saves 10 to 50 % of the time and makes up to a third more bytes.
  public var png = 4
  /// libimagequant's. Measured on 24 frames of 300×225 from a film, and 12 of 120×120 that are drawn: at 4 and at 7,
  /// libvips's default, 16.6 and 36.1 ms a frame, 9.9 and 17.9; 2 and 1 % more bytes; as the eye sees it, blurred by a
  /// pixel, 2.0 and 0.2 dB closer. At 3 it falls behind, at 12.5 ms.
  public var gif = 4
  /// libwebp's. Measured, a photo of 300×200: 4.7, 10.6 and 25.7 ms and 12.6, 12.3 and 11.5 kB at 2, 4 and 6.
  public var webp = 2
  /// 9 less libaom's speed. Measured at 0, 1, 3 and 4, a photo of 300×200: 7, 21, 51 and 187 ms of processor, 12.7, 11.9,
  /// 11.9 and 12.0 kB, 34.1, 34.6, 34.8 and 35.1 dB; of 1200×800 up to 3: 61, 188 and 561 ms, 140, 138 and 141 kB, 36.0, 36.2
  /// and 36.8 dB. 1 is imgproxy's choice as well, 4 sharp's. Colour is at half of the resolution below quality 90.
  public var avif = 1
  /// libjxl's. Measured at 4, 5 and 7, a photo of 300×200: 6, 11 and 15 ms, 11.4, 10.4 and 10.5 kB, 33.0, 32.6 and
  /// 32.5 dB; of 1200×800: 33, 125 and 202 ms, 127, 111 and 113 kB, 34.8, 34.1 and 34.2 dB.
  public var jxl = 4

  /// The range of `png`.
  public static let pngRange = 1...9
  /// The range of `gif`.
  public static let gifRange = 1...10
  /// The range of `webp`.
  public static let webpRange = 0...6
  /// The range of `avif`.
  public static let avifRange = 0...9
  /// The range of `jxl`.
  public static let jxlRange = 3...9

  /// The defaults.
  public init() {}
}
