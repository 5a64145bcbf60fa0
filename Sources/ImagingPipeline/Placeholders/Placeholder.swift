// Placeholder: something to show until an image is there, as a text for /info or as a tiny image.

import CVips
import Model

/// A placeholder made of a small version of its image.
///
/// A BlurHash and a colour know no transparency: what shows through is `ground`. The others keep it.
struct Placeholder {
  let kind: PlaceholderKind
  /// What it is made of, no side longer than `PlaceholderKind.longestSide`.
  private let small: SmallImage
  private let ground: Color

  /// The longer side of the image that a BlurHash is drawn as.
  private static let blurHashSide = 32
  /// libjpeg's quality of a low-quality image. Measured with Pillow's libjpeg, the test scene at 16×10: 403 bytes and 23.6 dB
  /// with colours in full, 367 and 20.3 with one for four pixels; at 40 377 and 22.4, 344 and 19.5.
  private static let quality: CInt = 60

  /// The placeholder of an image that was made for it.
  init(_ kind: PlaceholderKind, of small: SmallImage, on ground: Color) {
    (self.kind, self.small, self.ground) = (kind, small, ground)
  }

  /// A BlurHash, a ThumbHash in base64, `#rrggbb`, or a `data:` URI (RFC 2397).
  func text() throws(ImageError) -> String {
    switch kind {
    case .blurhash: return BlurHash(of: small.laid(on: ground)).text
    case .thumbhash: return ThumbHash(of: small).bytes.withUnsafeBytes(Self.base64)
    case .color: return "#" + small.laid(on: ground).meanColor.hexadecimal.prefix(6)
    case .lqip:
      let format = Self.format(of: small)
      let bytes = try Self.encode(small, as: format)
      return "data:\(format.mediaType);base64," + bytes.withUnsafeBytes(Self.base64)
    }
  }

  /// The tiny image: JPEG where it is opaque, else PNG. Hashes and colours are PNG, which keeps them as they are.
  ///
  /// - Parameter geometry: That of the small image: what is made is as large in points.
  func encoded(_ geometry: Geometry, _ watch: inout StageWatch) throws(ImageError) -> EncodedImage {
    let shown = shown
    let format = kind == .lqip ? Self.format(of: shown) : .png
    let bytes = try Self.encode(shown, as: format)
    let ratio = Double(shown.size.width) / Double(geometry.canvas.width)
    watch.finish(\.encode)
    return EncodedImage(
      bytes: bytes, format: format, size: shown.size,
      density: max(geometry.density * ratio, Geometry.leastDensity), timings: watch.timings)
  }

  /// What there is to see.
  private var shown: SmallImage {
    switch kind {
    case .blurhash:
      let ratio = min(
        1, Double(Self.blurHashSide) / Double(max(small.size.width, small.size.height)))
      func side(_ length: Int) -> Int { max(1, Int((Double(length) * ratio).rounded())) }
      return BlurHash(of: small.laid(on: ground)).image(
        PixelSize(width: side(small.size.width), height: side(small.size.height)))
    case .thumbhash: return ThumbHash(of: small).image
    case .color:
      let color = small.laid(on: ground).meanColor
      return SmallImage(PixelSize(width: 1, height: 1)) { _, _ in
        [color.red, color.green, color.blue, 255]
      }
    case .lqip: return small
    }
  }

  private static func format(of image: SmallImage) -> ImageFormat {
    image.isOpaque ? .jpeg : .png
  }

  private static func encode(
    _ image: SmallImage, as format: ImageFormat
  ) throws(ImageError) -> GLibBytes {
    try image.asImage().withVipsImage { image throws(ImageError) in
      try GLibBytes("encode") { bytes, count in
        format == .jpeg
          ? pictor_vips_jpegsave_full_colour(image, bytes, count, quality)
          : pictor_vips_pngsave(image, bytes, count, 9, VIPS_FOREIGN_PNG_FILTER_ALL, 0, 1)
      }
    }
  }

  private static func base64(_ bytes: UnsafeRawBufferPointer) -> String {
    guard
      let text = g_base64_encode(
        bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), gsize(bytes.count))
    else { return "" }
    defer { g_free(text) }
    return String(cString: text)
  }
}

extension PlaceholderKind {
  /// The longer side of the image that one is made of. A ThumbHash of more is not allowed, a BlurHash of more not better;
  /// of a low-quality image it is what is sent.
  fileprivate var longestSide: Double {
    switch self {
    case .blurhash, .color: 64
    case .thumbhash: Double(ThumbHash.longestSide)
    case .lqip: 16
    }
  }
}

extension Product {
  /// The placeholder in it.
  var placeholder: PlaceholderKind? {
    switch self {
    case .image: nil
    case .info(let kind): kind
    case .placeholder(let kind): kind
    }
  }

  /// The longest side that its image may have; `nil`: no such bound.
  var longestSide: Double? { placeholder?.longestSide }
}
