// Loader: the one loader each sniffed format may reach, and how much of the reduction it can do while decoding.

import CVips
import Model

/// Opens a source for the job at hand.
struct Loader {
  /// Which pages of a source are opened.
  enum Pages {
    /// The first, for HEIC and AVIF the primary one.
    case first
    /// The one with this index.
    case one(Int)
    /// All of them, one below the other.
    case all
  }

  let source: UnsafeRawBufferPointer
  let header: SourceHeader
  /// What of it is used. All of it is opened: no decoder of these can leave out what lies beside.
  let part: SourceRegion
  /// Most pixels of a source, which a vector is not drawn with more than.
  let maximumPixels: Int

  /// How much of the reduction must be left for the resize after a JPEG was shrunk by 2, 4 or 8 while decoding.
  ///
  /// Measured, 3000×2000 to 300: by 8 (rest 1.25) 13.4 ms of processor and an SSIM of 0.9638, by 4 (rest 2.5) 19.2 ms and
  /// 0.9633 as a JPEG. Only where nothing is lost when encoding, by 4 is better: 0.9977 for 0.9950.
  private static let leastJPEGRest = 1.25
  /// The same for WebP, whose decoder scales to any size, with a plainer filter.
  private static let leastWebPRest = 2.0

  /// What libvips scales a vector by. It passes over a factor outside of this and draws the nominal size, of any number
  /// of gigapixels.
  private static let vectorScales = 0.001...100_000.0

  /// More pixels than these are not held in memory but decoded by libjpeg, a strip at a time.
  private static let mostReducedPixels = 4_000_000

  /// What errors call the stage in which nothing but the source itself is looked at.
  static let openingStage: StaticString = "header"

  /// Opens it for a result.
  ///
  /// - Parameter frames: How many frames are wanted; above 1 all are there, one below the other.
  func load(for geometry: Geometry, frames: Int) throws(ImageError) -> Image {
    let pages = header.pages(frames: frames)
    if header.format == .jpeg { return try loadJPEG(shrink: shrinkOfJPEG(for: geometry)) }
    let failOn = try Self.decoderFailOn(source, header)
    let factor = factor(for: geometry)
    return switch header.format {
    case .webp where frames == 1 && factor > Self.leastWebPRest && canShrink(for: geometry):
      try Self.open(
        source, as: .webp, pages: pages, scale: Self.leastWebPRest / factor, failOn: failOn)
    case .svg:
      try loadVector(scale: scaleOfVector(for: geometry))
    default: try Self.open(source, as: header.format, pages: pages, failOn: failOn)
    }
  }

  /// Where the part lies in what was loaded, or in each of its frames.
  ///
  /// - Parameter size: Of what was loaded; of a frame where there are several.
  func window(in size: PixelSize, for geometry: Geometry) -> Window {
    if part.isWhole { return Window(size) }
    var scale = (
      x: Double(size.width) / Double(header.size.width),
      y: Double(size.height) / Double(header.size.height)
    )
    // The last pixels of a JPEG made smaller show less than the others (and something repeated).
    if header.format == .jpeg {
      let shrink = Double(shrinkOfJPEG(for: geometry))
      scale = (1 / shrink, 1 / shrink)
    }
    return Window(part.stored, times: scale)
  }

  /// The part's stored pixels for one of the result's, on the side where there are fewer.
  private func factor(for geometry: Geometry) -> Double {
    let target = part.orientation.swapsSides ? geometry.image.turned : geometry.image
    let source = part.stored.size
    return min(
      Double(source.width) / Double(target.width), Double(source.height) / Double(target.height))
  }

  /// The larger of the two sides' factors, so that a stretched vector is not blown up from too few pixels; but where a small
  /// part is made large or one side much longer than the other, only as much of it as the limit of pixels leaves.
  private func scaleOfVector(for geometry: Geometry) -> Double {
    let target = part.orientation.swapsSides ? geometry.image.turned : geometry.image
    let source = part.stored.size
    let wanted = max(
      Double(target.width) / Double(source.width), Double(target.height) / Double(source.height))
    return min(wanted, (Double(maximumPixels) / header.size.area).squareRoot())
  }

  private func loadVector(scale: Double) throws(ImageError) -> Image {
    let sides = [header.size.width, header.size.height].map {
      Int(min((Double($0) * scale).rounded(.up), 1e9))
    }
    try VectorCost.check(
      source, drawn: PixelSize(width: sides[0], height: sides[1]), nominal: header.size)
    return try Self.open(
      source, as: .svg, pages: .first, scale: scale, failOn: header.failOn)
  }

  /// Whether a part's edges may come to lie within pixels: the resampler can show such a part, libvips's resize cannot.
  private func canShrink(for geometry: Geometry) -> Bool {
    part.isWhole || geometry.image.pixels <= Image.mostReducedPixels
  }

  private func shrinkOfJPEG(for geometry: Geometry) -> Int {
    guard canShrink(for: geometry) else { return 1 }
    let factor = factor(for: geometry)
    return [8, 4, 2].first { factor / Double($0) >= Self.leastJPEGRest } ?? 1
  }

  /// Opens a JPEG, or decodes it at once where that is cheaper.
  private func loadJPEG(shrink: Int) throws(ImageError) -> Image {
    if shrink > 1, header.size.pixels <= Self.mostReducedPixels * shrink * shrink,
      let reducer = JPEGReducer(source, shrink: shrink), reducer.sourceSize == header.size
    {
      let image = try Image(
        blank: reducer.size, bands: reducer.bands, profile: header.profile)
      let isWhole = try reducer.run(source) { y, bytes throws(ImageError) in
        try image.write(bytes, row: y)
      }
      // It reads to the end marker and takes nothing that is damaged.
      if isWhole { return image }
    }
    let failOn = try Self.decoderFailOn(source, header)
    return try Self.open(source, as: .jpeg, pages: .first, shrink: shrink, failOn: failOn)
  }

  /// The damage that makes the decoder of pixels fail, once the project's own check has passed the source.
  ///
  /// - Throws: `ImageError.undecodable` where it has not.
  static func decoderFailOn(
    _ source: UnsafeRawBufferPointer, _ header: SourceHeader
  ) throws(ImageError) -> FailOn {
    let soundness = Soundness(of: source, as: header.format)
    try soundness.check(header.failOn)
    // libjpeg's warnings are of harmless things, too; where they are not needed they do not count.
    let isTold = header.format == .jpeg && soundness == .whole
    return isTold ? min(header.failOn, .truncated) : header.failOn
  }

  /// Opens a source to ask what it is. What libvips does not decode has no pixels then.
  ///
  /// Only a source that ends early is refused here: pixels are judged where they are decoded.
  ///
  /// - Throws: As `open`, and `ImageError.unsupportedFormat` for a JPEG of a kind that libjpeg does not decode.
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

  /// Opens a source: reads its header, and makes its pixels ready to be decoded from top to bottom when they are asked
  /// for. BMPs and icons are decoded at once, into memory.
  ///
  /// - Parameter failOn: The damage that makes it fail, then or when its pixels are decoded.
  static func open(
    _ source: UnsafeRawBufferPointer, as format: ImageFormat, pages: Pages, shrink: Int = 1,
    scale: Double = 1, failOn: FailOn
  ) throws(ImageError) -> Image {
    switch format {
    case .heic, .avif: try VipsLibrary.loadHEIF()
    case .jxl: try VipsLibrary.loadJXL()
    case .bmp: return try Bitmap(source).image()
    case .ico: return try Icon(source).image(failOn)
    default: break
    }
    let (page, count): (CInt, CInt) =
      switch pages {
      case .first: (0, 1)
      case .one(let index): (CInt(clamping: index), 1)
      case .all: (0, -1)
      }
    let bytes = source.baseAddress
    let size = source.count
    let access = VIPS_ACCESS_SEQUENTIAL
    let failOn = failOn.inVips
    let image = try Image(openingStage) { result in
      switch format {
      case .jpeg: pictor_vips_jpegload(bytes, size, result, access, failOn, CInt(shrink))
      case .png: pictor_vips_pngload(bytes, size, result, access, failOn)
      case .gif: pictor_vips_gifload(bytes, size, result, access, failOn, page, count)
      case .webp: pictor_vips_webpload(bytes, size, result, access, failOn, page, count, scale)
      case .tiff: pictor_vips_tiffload(bytes, size, result, access, failOn, page)
      case .heic, .avif:
        if case .one(let index) = pages {
          pictor_vips_heifload_page(bytes, size, result, access, failOn, CInt(clamping: index))
        } else {
          pictor_vips_heifload(bytes, size, result, access, failOn)
        }
      case .svg:
        pictor_vips_svgload(
          bytes, size, result, access, failOn,
          min(max(scale, Self.vectorScales.lowerBound), Self.vectorScales.upperBound))
      case .jxl: pictor_vips_jxlload(bytes, size, result, access, failOn)
      case .jp2: pictor_vips_jp2kload(bytes, size, result, access, failOn)
      case .bmp, .ico, .json: -1
      }
    }
    return format == .png ? try image.withProfile(of: PNGColour(of: source)) : image
  }
}

extension FailOn {
  /// The same for libvips.
  fileprivate var inVips: VipsFailOn {
    switch self {
    case .none: VIPS_FAIL_ON_NONE
    case .truncated: VIPS_FAIL_ON_TRUNCATED
    case .error: VIPS_FAIL_ON_ERROR
    case .warning: VIPS_FAIL_ON_WARNING
    }
  }
}
