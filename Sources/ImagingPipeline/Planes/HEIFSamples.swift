// HEIFSamples: what libheif leaves to do for the samples of grey images and of alpha.

import CDav1d
import CVips
import Model
import Platform

/// How the samples of a primary image are stored where libheif hands them on as they are: it converts the limited range of
/// colours alone, and leaves colours multiplied by their alpha.
struct HEIFSamples {
  private var isGreyLimited = false
  private var isAlphaLimited = false
  private var isPremultiplied = false

  init(of file: UnsafeRawBufferPointer) {
    guard let items = HEIFItems(of: file) else { return }
    if let (id, type, properties) = items.coded(items.primary),
      let codec = HEIFImage.Codec(rawValue: type), codec.isGrey(properties)
    {
      let own = items.properties(of: [items.primary])?[items.primary] ?? []
      isGreyLimited = codec.isLimited(own + properties) { items.items([id])?.first }
    }
    guard let alpha = items.alpha, let (id, type, properties) = items.coded(alpha) else { return }
    // Encoders of HEIC write alpha in full range, and do not say so.
    isAlphaLimited =
      HEIFImage.Codec(rawValue: type)?.isLimited(properties) {
        type == HEIFImage.Codec.av1.rawValue ? items.items([id])?.first : nil
      } ?? false
    isPremultiplied = items.isPremultiplied
  }

  /// Returns the image in full range, with colours of their own.
  func completed(_ image: consuming Image) throws(ImageError) -> Image {
    let hasAlpha = image.hasAlpha
    let colours = image.bands - (hasAlpha ? 1 : 0)
    if isGreyLimited || (isAlphaLimited && hasAlpha) {
      image = try image.stretched(
        (0..<image.bands).map { $0 < colours ? isGreyLimited : isAlphaLimited })
    }
    guard isPremultiplied, hasAlpha else { return image }
    let full = image.fullLight
    let format = image.format
    return try image.made("alpha") { pictor_vips_unpremultiply($0, $1, full) }.rounded(to: format)
  }
}

extension HEIFImage.Codec {
  /// Whether properties are those of an image of one plane.
  fileprivate func isGrey(_ properties: [HEIFBox]) -> Bool {
    guard let content = configuration(in: properties) else { return false }
    // AV1 Codec ISO Media File Format Binding, 2.3.3: `monochrome`; ISO/IEC 14496-15, 8.3.2.1.2: chromaFormat.
    return switch self {
    case .av1: (try? content.number(at: 2, width: 1)).map { $0 & 0x10 != 0 } ?? false
    case .hevc: (try? content.number(at: 16, width: 1)).map { $0 & 3 == 0 } ?? false
    }
  }

  /// The content of `hvcC` or `av1C`.
  private func configuration(in properties: [HEIFBox]) -> ByteReader? {
    let type = self == .hevc ? "hvcC" : "av1C"
    return properties.first { $0.type == type }?.content
  }

  /// Whether black is 16 in an image, and white 235: by the container, without that by the coded image.
  fileprivate func isLimited(_ properties: [HEIFBox], item: () -> HEIFItem?) -> Bool {
    if let model = HEIFImage.model(in: properties) { return !model.isFullRange }
    guard let item = item(), let configuration = configuration(in: properties) else { return false }
    switch self {
    case .av1:
      var header = Dav1dSequenceHeader()
      let start = item.data.baseAddress?.assumingMemoryBound(to: UInt8.self)
      return dav1d_parse_sequence_header(&header, start, item.data.count) == 0
        && header.color_range == 0
    case .hevc:
      let tile = HEIFImage.Tile(data: item.data, configuration: configuration, model: nil)
      return HEVCPlanes.isFullRange(tile) == false
    }
  }
}

extension Image {
  /// Returns the image with the limited range of some bands made full (ITU-T H.273, 8.3, VideoFullRangeFlag).
  fileprivate consuming func stretched(_ bands: [Bool]) throws(ImageError) -> Image {
    let full = fullLight
    // At more than 8 bits, black and white are shifted like all values.
    let unit = has16Bits ? 256.0 : 1
    let factors = bands.map { $0 ? full / (219 * unit) : 1 }
    let summands = bands.map { $0 ? -16 * full / 219 : 0 }
    let format = format
    return try made("range") {
      pictor_vips_linear_float($0, $1, factors, summands, CInt(factors.count))
    }.rounded(to: format)
  }

  /// Returns floats as whole numbers.
  fileprivate consuming func rounded(to format: VipsBandFormat) throws(ImageError) -> Image {
    // libvips truncates the fraction, so adding 0.5 rounds.
    try made("round") { pictor_vips_linear1($0, $1, 1, 0.5, 0) }.cast(to: format)
  }
}
