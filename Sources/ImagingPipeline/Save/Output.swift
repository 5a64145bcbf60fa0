// Output: chooses the format and quality of a result, and encodes it.

import CVips
import Core

/// The output format and encoder settings of one result.
struct Output {
  /// The format of the encoded bytes.
  let format: ImageFormat
  /// The quality, 1–100; `nil` for the lossless formats PNG, GIF and TIFF.
  let quality: Int?
  /// How much work the encoder takes.
  let efforts: EncoderEfforts
  /// The most threads of the encoder.
  let threads: Int
  /// Whether JPEG, PNG and GIF are made to draw coarsely first.
  let isInterlaced: Bool
  /// Whether a PNG has at most 256 colours, because its source has a palette.
  let reducesColours: Bool
  /// Whether the format keeps transparency.
  let keepsAlpha: Bool
  /// Whether a format that can be either keeps every pixel as it is.
  let isLossless: Bool
  /// The profile of the source that the result keeps with its colours; empty: it is in sRGB.
  let profile: [UInt8]
  /// How colour is stored; `nil`: as the quality says.
  let chroma: ChromaSampling?
  /// The bits of a palette; `nil`: as the image needs.
  let paletteBits: Int?

  /// Chooses the format, in this order:
  /// 1. The requested format.
  /// 2. The source's format with `format=source` if it can hold the size and the frames, or the
  ///    first format that the client accepts and that can hold the result.
  /// 3. GIF for an animation, PNG for pixels with alpha, otherwise JPEG (PNG if a side is too long
  ///    for JPEG).
  ///
  /// - Throws: `ImageError.invalidParameter` when the result does not fit into the format asked
  ///   for, or that cannot be written here.
  init(
    for transform: Transform, header: SourceHeader, frames: Int, geometry: Geometry,
    limits: ImagingLimits
  ) throws(ImageError) {
    let size = geometry.canvas
    let flattens = transform.output.flattens
    let hasAlpha =
      !flattens
      && (header.hasAlpha || transform.effects.radius != nil
        || (geometry.isPadded && transform.output.background.alpha < 255)
        || (transform.sizing.angle != 0 && transform.output.cornerColor.alpha < 255))
    if let format = transform.output.format {
      guard let limit = format.traits.longestSide, format.isEncodable else {
        throw .invalidParameter(
          name: "format", value: format.rawValue,
          allowed: ImageFormat.outputs.filter(\.isEncodable).map(\.rawValue)
            .joined(separator: ", "))
      }
      guard max(size.width, size.height) <= limit else {
        throw .invalidParameter(
          name: "format", value: format.rawValue,
          allowed: "a side has at most \(limit) pixels, the result would be \(size)")
      }
      self.format = format
    } else {
      let kept = transform.output.keepsFormat ? header.format.kept(hasAlpha: hasAlpha) : nil
      let candidates = transform.output.accepted + [hasAlpha ? .png : .jpeg, .png]
      let suited =
        kept.flatMap { $0.holds(frames: frames, hasAlpha: false, size: size) ? $0 : nil }
        ?? candidates.first { $0.suits(frames: frames, hasAlpha: hasAlpha, size: size) }
      format = suited ?? (frames > 1 ? .gif : .png)
    }
    keepsAlpha = format.traits.holdsAlpha && !flattens
    isInterlaced = transform.output.isProgressive
    efforts = limits.efforts
    threads = limits.maximumThreads
    reducesColours =
      format == .png && header.hasPalette && limits.keepsPalettes && ImageFormat.gif.isEncodable
      && size.pixels <= PNGEncoder.maximumPixels
    isLossless =
      transform.output.isLossless && format != .jpeg && ImageFormat.lossy.contains(format)
    // A grey result may get colours, and encoders of other formats refuse some profiles. A JPEG
    // holds 16 MB of one; those with tables have up to 2.
    let keepsProfile =
      transform.output.profile == .keep && transform.product == .image
      && [.jpeg, .png, .webp, .avif, .tiff].contains(format)
      && header.profile.count <= 4 << 20
      && header.profile.dropFirst(16).starts(with: "RGB ".utf8)
    profile = keepsProfile ? header.profile : []
    chroma = transform.output.chroma
    paletteBits = transform.output.colours.map { colours in
      [8, 4, 2, 1].first { 1 << $0 <= colours } ?? 1
    }
    quality =
      isLossless ? nil : transform.output.qualities[format].map { transform.output.quality ?? $0 }
  }
}

extension ImageFormat {
  /// Whether this build can encode the format. libvips reads AVIFs and JPEG XLs, and encodes some
  /// AVIFs, with modules, which this call loads: results are read again (`EncodedCheck`).
  var isEncodable: Bool {
    traits.longestSide != nil && codec.failure() == nil
  }

  /// Whether a result may have this format without an explicit request.
  func suits(frames: Int, hasAlpha: Bool, size: PixelSize) -> Bool {
    (!traits.encodesSlowly || size.pixels <= Self.maximumSlowPixels)
      && holds(frames: frames, hasAlpha: hasAlpha, size: size)
  }

  /// Whether a result can have this format.
  func holds(frames: Int, hasAlpha: Bool, size: PixelSize) -> Bool {
    guard let longestSide = traits.longestSide, size.longestSide <= longestSide,
      frames == 1 || traits.holdsFrames, !hasAlpha || traits.holdsAlpha
    else { return false }
    return isEncodable
  }

  /// The maximum pixels of an AVIF or JPEG XL without an explicit request. 16 megapixels of AVIF
  /// take 2.3 s of processor time and 329 MB; 4 of WebP take 0.23 s and 20 MB.
  private static let maximumSlowPixels = 4_000_000
}

extension Output {
  /// How much of the error of a colour a palette passes on to the next pixels, from 0 to 1.
  /// Photographs at 300 pixels have 5 % fewer bytes than with 1, and SSIM 0.975 instead of 0.962.
  static let dither = 0.35

  /// Encodes an image in sRGB or grey; everything not yet computed is computed now.
  ///
  /// - Parameter quality: Replaces the output's own quality; ignored for PNG, GIF and TIFF.
  func encode(_ image: borrowing Image, quality: Int? = nil) throws(ImageError) -> GLibBytes {
    let quality = quality ?? self.quality ?? 0
    if let bytes = try encodeDirectly(image, quality: quality) { return bytes }
    let bytes = try image.saved(
      by: format.codec.saver ?? "", format.codec.arguments(self, quality))
    if format == .webp, !image.hasMetadata, !image.hasProfile,
      let lean = bytes.withUnsafeBytes(Stripping.strippedWebP)
    {
      return try GLibBytes(copying: lean)
    }
    return bytes
  }

  /// Encodes an image with the encoder of its format; `nil` for what libvips encodes without one.
  private func encodeDirectly(
    _ image: borrowing Image, quality: Int
  ) throws(ImageError) -> GLibBytes? {
    switch format {
    case .jpeg:
      return try JPEGEncoder.encode(
        image,
        JPEGEncoder.Settings(
          quality: quality, isProgressive: isInterlaced,
          subsamples: chroma.map { $0 == .quarter }
            ?? (quality < JPEGEncoder.Settings.fullChromaQuality)))
    case .png:
      let encoder = PNGEncoder(
        effort: efforts.png, effortOfPalette: efforts.gif, isInterlaced: isInterlaced,
        reducesColours: reducesColours, paletteBits: paletteBits)
      return try encoder.encode(image)
    case .avif:
      let encoder = AVIFEncoder(quality: quality, threads: threads)
      return !isLossless && chroma != .full && encoder.suits(image, effort: efforts.avif)
        ? try encoder.encode(image) : nil
    default: return nil
    }
  }
}

extension Image {
  /// Whether the image is one frame of 8 bits without metadata: what `AVIFEncoder` can encode.
  var isPlain: Bool {
    format == VIPS_FORMAT_UCHAR && !isAnimation && !hasMetadata && !hasProfile
  }
}
