// SourceHeader: what a source says about itself before any of its pixels is decoded, and the limits it is held to.

import CVips
import ImagingWire
import Model

/// The facts of a source's header.
struct SourceHeader {
  /// The sniffed format.
  let format: ImageFormat
  /// Size of the stored image, or of one frame.
  let size: PixelSize
  /// Frames of an animation, pages of a TIFF, images of a HEIC; 1 for all other.
  let pages: Int
  /// The page to be read, as its loader counts them, where that is not simply the first one.
  let page: Int?
  /// Whether the request names another frame than the first.
  let isLaterFrame: Bool
  /// How the stored image is turned.
  let orientation: Orientation
  /// Whether pixels have an alpha. A band is enough, transparent or not: so all sizes of a source are of one format,
  /// and it is known before a pixel is decoded.
  let hasAlpha: Bool
  /// The colour profile, where it says anything else than sRGB; empty otherwise.
  let profile: [UInt8]
  /// What the container says of the colours in a profile's place, where that is anything else than sRGB.
  let codePoints: CodePoints?
  /// How long each frame stays, in ms.
  let delays: [CInt]
  /// How often the animation runs, in libvips's terms: 0 for ever.
  let loop: Int
  /// The damage for which the source is refused.
  let failOn: FailOn
  /// The same for opening it: damage of pixels is judged where they are decoded for the result.
  let headerFailOn: FailOn

  /// Reads the header.
  ///
  /// - Parameter failOn: The damage for which the source is refused.
  /// - Throws: `ImageError.undecodable`, within `.ofVariant` where only a later frame is; `.invalidParameter` when there
  ///   is no such frame.
  init(
    of source: UnsafeRawBufferPointer, as format: ImageFormat, frame: Int?, failOn: FailOn
  ) throws(ImageError) {
    (self.failOn, headerFailOn) = (failOn, min(failOn, .truncated))
    var image = try Loader.describe(source, as: format, failOn: failOn)
    let counted = max(1, image.integer("n-pages") ?? 1)
    var pages = 1
    var page = frame
    // What libvips counts elsewhere is something else: resolution levels of a JPEG 2000, all directories of a TIFF.
    switch format {
    case .gif, .webp, .heic, .avif: pages = counted
    case .tiff:
      let directories = TIFFDirectories(of: source, count: counted)
      pages = directories.pages(of: counted)
      let directory = directories.directory(ofPage: min(frame ?? 0, pages))
      page = frame == nil && directory == 0 ? nil : directory
    default: page = nil
    }
    if let frame {
      guard frame < pages else {
        throw .invalidParameter(
          name: "frame", value: "\(frame)",
          allowed: pages == 1
            ? "the source has one frame, 0" : "the source has \(pages) frames, 0 to \(pages - 1)")
      }
    }
    isLaterFrame = (frame ?? 0) > 0
    // Without a number a HEIC's primary image is opened, which may be another than the first.
    if let page, page > 0 || format == .heic || format == .avif {
      do throws(ImageError) {
        image = try Loader.open(source, as: format, pages: .one(page), failOn: headerFailOn)
      } catch {
        throw isLaterFrame && error.isOfSource ? .ofVariant(error) : error
      }
    }
    self.format = format
    self.pages = pages
    self.page = page
    size = image.size
    hasAlpha = image.hasAlpha
    profile = image.foreignProfile
    delays = image.integers("delay")
    loop = image.integer("loop") ?? 0
    codePoints =
      format == .heic || format == .avif ? HEIFContainer.codePoints(of: source) : nil
    // libheif applies the container's own rotation (ISO/IEC 23008-12, 6.5.10) and libjxl the codestream's (ISO/IEC
    // 18181-1, D.3), as these say; the EXIF copy of it is not to be applied again.
    let isTurned = [.heic, .avif, .jxl].contains(format)
    orientation = isTurned ? .up : Orientation(tag: image.integer("orientation"))
  }

  /// Whether `pages` are one after the other in time.
  var isAnimation: Bool { pages > 1 && (format == .gif || format == .webp) }

  /// Size of the image as it will be seen.
  var uprightSize: PixelSize { orientation.swapsSides ? size.turned : size }

  /// Holds the source to its limits. A vector has no pixels of its own; what is rendered of it is limited by
  /// `Geometry`.
  ///
  /// - Throws: `ImageError.tooManyFrames` or `.tooManyPixels`.
  func check(against limits: ImagingLimits) throws(ImageError) {
    guard !isAnimation || pages <= limits.maximumFrames else {
      throw .tooManyFrames(frames: pages, limit: limits.maximumFrames)
    }
    let pixels = size.pixels * (isAnimation ? pages : 1)
    guard format == .svg || pixels <= limits.maximumPixels else {
      throw .tooManyPixels(pixels: pixels, limit: limits.maximumPixels)
    }
  }

  /// What is opened for so many frames.
  func pages(frames: Int) -> Loader.Pages {
    frames > 1 ? .all : page.map(Loader.Pages.one) ?? .first
  }

  /// How many frames the result has: all of an animation, where the output can hold them (GIF does where no format is asked
  /// for), a still is not asked for and none is picked out. A placeholder stands still.
  func frames(for transform: Transform) -> Int {
    let keepsFrames = transform.isAnimated && transform.format?.holdsFrames ?? true
    return isAnimation && page == nil && keepsFrames && transform.product == .image ? pages : 1
  }
}
