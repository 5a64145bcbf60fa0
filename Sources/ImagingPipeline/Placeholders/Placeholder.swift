// Placeholder: a placeholder for a loading image, as text or as a tiny image.

import CVips
import ImagingWire
import Model

/// A placeholder computed from a small version of its image.
///
/// A BlurHash and a colour have no transparency, so the image is flattened onto `background`. The other
/// kinds keep transparency.
struct Placeholder {
  let kind: PlaceholderKind
  /// The small image; no side is longer than `PlaceholderKind.longestSide`.
  private let small: SmallImage
  private let background: Color

  /// The longer side of the image that a BlurHash is rendered to.
  private static let blurHashSide = 32
  /// libjpeg's quality of a low-quality image placeholder.
  private static let quality = 60

  /// Creates the placeholder of a small image rendered for it.
  init(_ kind: PlaceholderKind, of small: SmallImage, on background: Color) {
    self.kind = kind
    self.small = small
    self.background = background
  }

  /// Returns a BlurHash, a ThumbHash in base64, `#rrggbb`, or a `data:` URI (RFC 2397).
  func text() throws(ImageError) -> String {
    switch kind {
    case .blurhash: return BlurHash(of: small.flattened(onto: background)).text
    case .thumbhash: return ThumbHash(of: small).bytes.withUnsafeBytes(Self.base64)
    case .color: return "#" + small.flattened(onto: background).meanColor.hexadecimal.prefix(6)
    case .lqip:
      let format = Self.format(of: small)
      let bytes = try Self.encode(small, as: format)
      return "data:\(format.mediaType);base64," + bytes.withUnsafeBytes(Self.base64)
    }
  }

  /// Encodes the placeholder as a tiny image. A low-quality image is JPEG if opaque, otherwise PNG;
  /// hashes and colours are lossless PNG.
  ///
  /// - Parameter geometry: The geometry of the small image; the result has the same size in points.
  func encoded(_ geometry: Geometry, watch: inout StageWatch) throws(ImageError) -> EncodedImage {
    let shown = shown
    let format = kind == .lqip ? Self.format(of: shown) : .png
    let bytes = try Self.encode(shown, as: format)
    let ratio = Double(shown.size.width) / Double(geometry.canvas.width)
    watch.finish(\.encode)
    let image = RenderedImage(
      format: format, size: shown.size,
      density: max(geometry.density * ratio, Geometry.leastDensity))
    return EncodedImage(bytes: bytes, content: .image(image), timings: watch.timings)
  }

  /// The image that the placeholder shows.
  private var shown: SmallImage {
    switch kind {
    case .blurhash:
      let ratio = min(
        1, Double(Self.blurHashSide) / Double(max(small.size.width, small.size.height)))
      func side(_ length: Int) -> Int { max(1, Int((Double(length) * ratio).rounded())) }
      return BlurHash(of: small.flattened(onto: background)).image(
        PixelSize(width: side(small.size.width), height: side(small.size.height)))
    case .thumbhash: return ThumbHash(of: small).image
    case .color:
      let color = small.flattened(onto: background).meanColor
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
    let image = try image.asImage()
    if format == .jpeg {
      return try JPEGEncoder.encode(
        image, JPEGEncoder.Settings(quality: quality, isProgressive: false, subsamples: false))
    }
    return try image.withVipsImage { image throws(ImageError) in
      try GLibBytes("encode") { bytes, count in
        pictor_vips_pngsave(image, bytes, count, 9, VIPS_FOREIGN_PNG_FILTER_ALL, 0, 1)
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
  /// The longer side of the image that a placeholder is computed from. ThumbHash allows no more,
  /// and BlurHash gains nothing from more; a low-quality image is sent at this size.
  fileprivate var longestSide: Double {
    switch self {
    case .blurhash, .color: 64
    case .thumbhash: Double(ThumbHash.longestSide)
    case .lqip: 16
    }
  }
}

extension Product {
  /// The kind of placeholder in this product.
  var placeholder: PlaceholderKind? {
    switch self {
    case .image: nil
    case .info(let kind): kind
    case .placeholder(let kind): kind
    }
  }
}

extension Geometry.Limits {
  /// The limits of a job, and for a placeholder those of the image that it is computed from.
  init(_ limits: ImagingLimits, for product: Product) {
    self.init(
      sourcePixels: limits.maximumPixels, resultPixels: limits.maximumResultPixels,
      longestSide: product.placeholder?.longestSide)
  }
}
