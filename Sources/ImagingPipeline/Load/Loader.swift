// Loader: opens a source with its format's loader, and shrinks it on load where possible.

import CVips
import Core
import FastJPEG

/// A decoded source, or its first part that is decoded on demand.
struct LoadedImage: ~Copyable {
  /// The pixels; the frames of an animation are stacked vertically.
  let image: Image
  /// The window of the used region in the image, or in each of its frames.
  let window: Window
}

/// Opens a source for one job.
struct Loader {
  /// The pages of a source that are opened.
  enum Pages {
    /// The first page; for HEIC and AVIF the primary image.
    case first
    /// The page with this index.
    case one(Int)
    /// All pages, stacked vertically.
    case all
  }

  let source: UnsafeRawBufferPointer
  let header: SourceHeader
  /// The used region. The whole source is opened, because none of these decoders can skip the rest.
  let part: SourceRegion
  /// The maximum pixels of a source, which also limit how large a vector is drawn.
  let maximumPixels: Int
  /// The most threads that decode.
  let threads: Int

  /// The minimum factor left for the resize after a JPEG was shrunk while decoding. A larger one
  /// gains likeness only for lossless outputs: 3000×2000 to 300 takes 13 ms at 1.25, 19 at 2.5.
  private static let leastJPEGRest = 1.0
  /// The minimum factor by which a WebP is shrunk while it is decoded, and then to its final size.
  /// Above it libwebp leaves out its loop filter (`bypass_filtering`); below it, its averages look
  /// softer than a resize, and save little.
  private static let leastWebPShrink = 4.0 / 3
  /// The factor left for the resize of a region of a WebP: libwebp's pixels are up to half a pixel
  /// off.
  private static let webPRestOfRegion = 2.0

  /// The scale factors that libvips accepts for a vector. For a factor outside this range libvips
  /// draws the nominal size, which is unbounded.
  private static let vectorScales = 0.001...100_000.0

  /// The maximum pixels of a reduced JPEG in memory; libjpeg decodes larger ones in strips.
  private static let maximumReducedPixels = 4_000_000

  /// The stage name in errors of opening a source.
  static let openingStage: StaticString = "header"

  /// Opens the source for a result.
  ///
  /// - Parameter frames: The number of frames of the result; above 1, all frames are loaded,
  ///   stacked vertically.
  func load(for geometry: Geometry, frames: Int) throws(ImageError) -> LoadedImage {
    if let reduced = try reducedPlanes(for: geometry, frames: frames) {
      let window = Window(reduced.size)
      return LoadedImage(image: reduced, window: window)
    }
    let image = try opened(for: geometry, frames: frames)
    let window = window(in: frames > 1 ? header.size : image.size, for: geometry)
    return LoadedImage(image: image, window: window)
  }

  private func opened(for geometry: Geometry, frames: Int) throws(ImageError) -> Image {
    let pages = header.pages(frames: frames)
    if header.format == .jpeg { return try loadJPEG(eighths: eighthsOfJPEG(for: geometry)) }
    let failOn = try Self.decoderFailOn(source, header: header)
    if header.format == .png, failOn == .warning, let image = PNGPixels.image(source, header) {
      return image
    }
    return switch header.format {
    case .webp:
      try Self.open(
        source, as: .webp, pages: pages, scale: 1 / shrinkOfWebP(for: geometry, frames: frames),
        failOn: failOn)
    case .svg:
      try Self.open(
        source, as: .svg, pages: .first, scale: scaleOfVector(for: geometry), failOn: header.failOn)
    default: try Self.open(source, as: header.format, pages: pages, failOn: failOn)
    }
  }

  /// Returns the window of the region in the loaded image, or in each of its frames.
  ///
  /// - Parameter size: The size of the loaded image, or of one frame of an animation.
  private func window(in size: PixelSize, for geometry: Geometry) -> Window {
    if header.format == .jpeg {
      // The last pixels of a shrunk JPEG cover fewer source pixels than the others, plus padding.
      let scale = Double(eighthsDecoded(in: size, of: eighthsOfJPEG(for: geometry))) / 8
      return Window(part.stored, times: (scale, scale))
    }
    if part.isWhole { return Window(size) }
    let scale = (
      x: Double(size.width) / Double(header.size.width),
      y: Double(size.height) / Double(header.size.height)
    )
    return Window(part.stored, times: scale)
  }

  /// The size of the result before it is turned.
  func storedTarget(for geometry: Geometry) -> PixelSize {
    part.orientation.swapsSides ? geometry.image.turned : geometry.image
  }

  /// Returns the stored pixels of the region per pixel of the result, on the axis where there are
  /// fewer.
  func factor(for geometry: Geometry) -> Double {
    let target = storedTarget(for: geometry)
    let source = part.stored.size
    return min(
      Double(source.width) / Double(target.width), Double(source.height) / Double(target.height))
  }

  /// Returns the scale to draw a vector at: the larger factor of both axes, so that a stretched
  /// vector is not enlarged from too few pixels. The pixel limit caps the scale when a small region
  /// is enlarged or the axes differ much.
  func scaleOfVector(for geometry: Geometry) -> Double {
    let target = storedTarget(for: geometry)
    let source = part.stored.size
    let wanted = max(
      Double(target.width) / Double(source.width), Double(target.height) / Double(source.height))
    return min(wanted, (Double(maximumPixels) / header.size.area).squareRoot())
  }

  /// Whether the source may be shrunk on load. A region's edges may then lie within pixels, which
  /// the resampler supports and libvips's resize does not.
  private func canShrink(for geometry: Geometry) -> Bool {
    part.isWhole || geometry.image.pixels <= Image.maximumReducedPixels
  }

  /// Returns how often each side of a WebP is shrunk while it is decoded; 1 for other formats.
  func shrinkOfWebP(for geometry: Geometry, frames: Int) -> Double {
    let factor = factor(for: geometry) / (part.isWhole ? 1 : Self.webPRestOfRegion)
    let isShrunk =
      header.format == .webp && frames == 1 && canShrink(for: geometry)
      && factor > (part.isWhole ? Self.leastWebPShrink : 1)
    return isShrunk ? factor : 1
  }

  /// Returns how much of each side of a JPEG is decoded, in eighths: 1–4, or 8 for all of it.
  /// libjpeg has no quick transform for three eighths, and decodes four instead.
  func eighthsOfJPEG(for geometry: Geometry) -> Int {
    guard header.format == .jpeg, canShrink(for: geometry) else { return 8 }
    let factor = factor(for: geometry)
    // The window of a region has the decoder's scale, whichever decodes.
    let choices = part.isWhole ? [1, 2, 3, 4] : [1, 2, 4]
    return choices.first { factor * Double($0) / 8 >= Self.leastJPEGRest } ?? 8
  }

  /// Returns the share of the pixels that the decoder makes; 1 for formats that are decoded whole.
  func shareDecoded(for geometry: Geometry) -> Double {
    switch header.format {
    case .jpeg:
      let eighths = Double(eighthsOfJPEG(for: geometry))
      return eighths * eighths / 64
    case .webp, .avif, .heic: return min(1 / max(factor(for: geometry), 1), 1)
    default: return 1
    }
  }

  /// Returns the eighths that a decoded JPEG has, which libjpeg may have decoded in place of those
  /// asked for.
  private func eighthsDecoded(in size: PixelSize, of asked: Int) -> Int {
    let sides = [header.size.width, header.size.height].map { ($0 * asked + 7) / 8 }
    return [size.width, size.height] == sides ? asked : Self.eighths(ofLibjpegFor: asked)
  }

  /// Returns the eighths that libjpeg decodes in place of others.
  private static func eighths(ofLibjpegFor asked: Int) -> Int { asked == 3 ? 4 : asked }

  /// Opens a JPEG, or decodes it immediately with a scaled decoder where that is cheaper.
  private func loadJPEG(eighths: Int) throws(ImageError) -> Image {
    let isScaled =
      eighths < 8 && header.size.pixels * eighths * eighths <= Self.maximumReducedPixels * 64
    if isScaled, let decoder = ScaledJPEGDecoder(source, eighths: eighths),
      decoder.sourceSize == header.size
    {
      let image = try Image(
        blank: decoder.size, bands: decoder.bands, profile: header.profile)
      let isWhole = try decoder.run(source) { y, bytes throws(ImageError) in
        try image.write(bytes, row: y)
      }
      // The decoder succeeds only for a JPEG that is complete up to its end marker and undamaged.
      if isWhole { return image }
    }
    let shrink = 8 / Self.eighths(ofLibjpegFor: eighths)
    let failOn = try Self.decoderFailOn(source, header: header)
    return try Self.open(source, as: .jpeg, pages: .first, shrink: shrink, failOn: failOn)
  }

  /// Returns the damage that makes the pixel decoder fail, after Pictor's own check has accepted
  /// the source.
  ///
  /// - Throws: `ImageError.undecodable` if the check rejects the source.
  static func decoderFailOn(
    _ source: UnsafeRawBufferPointer, header: SourceHeader
  ) throws(ImageError) -> FailOn {
    let soundness = Soundness(of: source, as: header.format)
    try soundness.check(header.failOn)
    // libjpeg also warns of harmless things, so its warnings are ignored where Pictor's check found
    // the file intact.
    let isTold = header.format == .jpeg && soundness == .whole
    return isTold ? min(header.failOn, .truncated) : header.failOn
  }

  /// Opens a source to read its header. A BMP or icon has no pixels in the returned image.
  ///
  /// Rejects only a truncated source; damaged pixels are found when they are decoded.
  ///
  /// - Throws: The errors of `open`, and `ImageError.unsupportedFormat` for a JPEG process that
  ///   libjpeg does not decode.
  static func describe(
    _ source: UnsafeRawBufferPointer, as format: ImageFormat, failOn: FailOn
  ) throws(ImageError) -> Image {
    let failOn = min(failOn, .truncated)
    switch format {
    case .bmp: return try Bitmap(source).described()
    case .ico: return try Icon(source).described()
    case .jpeg:
      do throws(ImageError) {
        return try open(source, as: .jpeg, pages: .first, failOn: failOn)
      } catch {
        throw JPEGProcess(of: source)?.refusal ?? error
      }
    default: return try open(source, as: format, pages: .first, failOn: failOn)
    }
  }

  /// Opens a source: reads its header and prepares sequential decoding on demand. BMPs and icons
  /// are decoded immediately, into memory.
  ///
  /// - Parameter failOn: The damage that makes opening or decoding fail.
  static func open(
    _ source: UnsafeRawBufferPointer, as format: ImageFormat, pages: Pages, shrink: Int = 1,
    scale: Double = 1, failOn: FailOn
  ) throws(ImageError) -> Image {
    switch format {
    case .bmp: return try Bitmap(source).image()
    case .ico: return try Icon(source).image(failOn)
    default: break
    }
    let codec = format.codec
    if let failure = codec.failure() { throw failure }
    var (page, count, isPrimary) = (0, 1, true)
    switch pages {
    case .first: break
    case .one(let index): (page, isPrimary) = (Int(CInt(clamping: index)), false)
    case .all: count = -1
    }
    var arguments = "access=sequential,fail-on=\(failOn.rawValue)"
    switch format {
    case .jpeg: arguments += ",shrink=\(shrink)"
    case .gif: arguments += ",page=\(page),n=\(count)"
    case .webp: arguments += ",page=\(page),n=\(count),scale=\(scale)"
    case .tiff: arguments += ",page=\(page)"
    case .heic where !isPrimary, .avif where !isPrimary: arguments += ",page=\(page)"
    case .svg:
      let scale = min(max(scale, vectorScales.lowerBound), vectorScales.upperBound)
      arguments += ",scale=\(scale)"
    default: break
    }
    let image = try Image(openingStage) {
      pictor_vips_load(
        (codec.loader ?? "") + "_buffer", source.baseAddress, source.count, arguments, $0)
    }
    // Of several images only the primary one is looked at.
    isPrimary = isPrimary || image.integer("n-pages") ?? 1 == 1
    return switch format {
    case .png: try image.withProfile(of: PNGColour(of: source))
    case .heic where isPrimary, .avif where isPrimary:
      try HEIFSamples(of: source).completed(image)
    default: image
    }
  }
}

extension Loader {
  /// The least reduction of a WebP or HEIC without the filter of its blocks' edges. Below it, the
  /// edges cost bytes and likeness: a WebP by 2.25 has SSIM 0.9695 without it, 0.9707 with it.
  private static let leastUnsmoothed = 4.0

  /// Decodes a source to its planes and reduces these to the result's size.
  ///
  /// - Returns: The reduced region; `nil` where libvips decodes.
  func reducedPlanes(for geometry: Geometry, frames: Int) throws(ImageError) -> Image? {
    let target = storedTarget(for: geometry)
    let size = part.stored.size
    guard frames == 1, header.page == nil, !header.hasAlpha, target != size,
      target.width <= size.width, target.height <= size.height,
      target.pixels <= Image.maximumReducedPixels
    else { return nil }
    let isSmoothed = factor(for: geometry) < Self.leastUnsmoothed
    // A second try, if dav1d or libwebp can start no threads: the result must not depend on that.
    for threads in threads > 1 ? [threads, 1] : [1] {
      switch header.format {
      case .heic where !needsAllBits, .avif where !needsAllBits:
        guard let image = HEIFImage(of: source) else { return nil }
        let reduced = try image.reduced(
          to: target, showing: part.stored, of: header.size, profile: header.profile,
          decoding: .init(isSmoothed: isSmoothed, threads: threads))
        if reduced == nil, image.codec == .av1 { continue }
        return reduced
      case .webp where !header.isAnimation:
        guard
          let planes = WebPPlanes(
            source, size: header.size, isSmoothed: isSmoothed, isThreaded: threads > 1)
        else { continue }
        return try planes.image.reduced(
          to: target, showing: Window(part.stored, times: (1, 1)), profile: header.profile,
          threads: threads)
      default: return nil
      }
    }
    return nil
  }

  /// Whether colours that are converted after the reduction need all bits of a deep source.
  private var needsAllBits: Bool {
    header.pixelBytes > 4 && (header.codePoints != nil || !header.profile.isEmpty)
  }
}
