// Placeholder: a placeholder for a loading image, as text or as a tiny image.

import CVips
import Core
import Glibc

/// A placeholder computed from a small version of its image.
///
/// A BlurHash and a colour have no transparency, so the image is flattened onto `background`. The
/// other kinds keep transparency.
struct Placeholder {
  let kind: PlaceholderKind
  /// The small image; no side is longer than `PlaceholderKind.longestSide`.
  let small: SmallImage
  let background: Color

  /// The longer side of the image that a BlurHash is rendered to.
  private static let blurHashSide = 32
  /// libjpeg's quality of a low-quality image placeholder.
  private static let quality = 60

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
    return try image.saved(by: "pngsave", "compression=9,filter=all")
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

/// An image of up to some thousand pixels in sRGB, as 8-bit red, green, blue and alpha; colours are
/// not premultiplied.
struct SmallImage: Equatable {
  let size: PixelSize
  /// The rows from top to bottom, four values per pixel.
  private(set) var values: [UInt8] = []

  /// Creates an image by computing each pixel.
  init(_ size: PixelSize, pixel: (_ x: Int, _ y: Int) -> [UInt8]) {
    self.size = size
    values.reserveCapacity(size.pixels * 4)
    for y in 0..<size.height { for x in 0..<size.width { values += pixel(x, y) } }
  }

  /// Copies an image from the pipeline: sRGB or grey, 8 bits, with or without alpha.
  ///
  /// - Throws: The error of a damaged source, which may surface only here.
  init(_ image: borrowing Image) throws(ImageError) {
    let size = image.size
    let bands = image.bands
    let memory = try image.withVipsImage { image throws(ImageError) in
      var count = 0
      guard let memory = vips_image_write_to_memory(image, &count) else {
        throw VipsLibrary.failure(in: "pixels")
      }
      return UnsafeRawBufferPointer(start: memory, count: count)
    }
    defer { g_free(UnsafeMutableRawPointer(mutating: memory.baseAddress)) }
    guard (1...4).contains(bands), memory.count == size.pixels * bands else {
      throw .internal(detail: "\(memory.count) bytes of \(size) pixels with \(bands) bands")
    }
    self.init(size) { x, y in
      let start = (y * size.width + x) * bands
      let alpha = bands.isMultiple(of: 2) ? memory[start + bands - 1] : 255
      let (green, blue) = bands < 3 ? (0, 0) : (1, 2)
      return [memory[start], memory[start + green], memory[start + blue], alpha]
    }
  }

  /// Red, green, blue and alpha of all pixels.
  var pixels: [SIMD4<UInt8>] {
    stride(from: 0, to: values.count, by: 4).map {
      SIMD4(values[$0], values[$0 + 1], values[$0 + 2], values[$0 + 3])
    }
  }

  /// Whether every pixel is opaque.
  var isOpaque: Bool { stride(from: 3, to: values.count, by: 4).allSatisfy { values[$0] == 255 } }

  /// Returns the image flattened onto a colour.
  func flattened(onto background: Color) -> SmallImage {
    let background = [background.red, background.green, background.blue].map(Int.init)
    var result = self
    for start in stride(from: 0, to: values.count, by: 4) {
      let alpha = Int(values[start + 3])
      for (band, behind) in background.enumerated() {
        let sum = Int(values[start + band]) * alpha + behind * (255 - alpha)
        result.values[start + band] = UInt8((sum + 127) / 255)
      }
      result.values[start + 3] = 255
    }
    return result
  }

  /// The mean colour in linear light, as seen from a distance; ignores alpha.
  var meanColor: Color {
    let mean = SRGB.linear(self).reduce(SIMD3<Double>(), +) / Double(size.pixels)
    return Color(
      red: UInt8(SRGB.byte(mean.x)), green: UInt8(SRGB.byte(mean.y)),
      blue: UInt8(SRGB.byte(mean.z)))
  }

  /// Returns the image in libvips's memory, ready to be encoded; has alpha only if it is not
  /// opaque.
  func asImage() throws(ImageError) -> Image {
    let bands = isOpaque ? 3 : 4
    let image = try Image(blank: size, bands: bands, profile: [])
    for y in 0..<size.height {
      let row = values[y * size.width * 4..<(y + 1) * size.width * 4]
      let line = bands == 4 ? Array(row) : row.indices.filter { $0 % 4 != 3 }.map { values[$0] }
      try image.write(line, row: y)
    }
    return image
  }
}
