// SourceHeader: detects a source's format, reads the facts of its header, and checks them against
// the limits.

import CJXL
import CVips
import Core

/// The facts of a source's header.
struct SourceHeader {
  /// The detected format.
  let format: ImageFormat
  /// The size of the stored image, or of one frame.
  let size: PixelSize
  /// The number of frames of an animation, pages of a TIFF or images of a HEIC; 1 for all other
  /// sources.
  let pages: Int
  /// The frames of an animation of which one alone is decoded (`UndecodedAnimation`); 1 for all
  /// other sources.
  let undecodedFrames: Int
  /// The page to read, in its loader's numbering; `nil` for the default page.
  let page: Int?
  /// Whether the request selects a frame other than the first.
  let isLaterFrame: Bool
  /// The orientation of the stored image.
  let orientation: Orientation
  /// Whether pixels have an alpha band, transparent or not. Every size of a source therefore has
  /// the same format, known before decoding.
  let hasAlpha: Bool
  /// Whether the source's pixels are indices of a palette: PNG, GIF, BMP, ICO.
  let hasPalette: Bool
  /// The bytes of a decoded pixel: its samples, of 1 byte each, or of 2 above 8 bits.
  let pixelBytes: Int
  /// The pixels of a millimetre, across and down. Some encoders write it.
  let resolution: (across: Double, down: Double)
  /// The colour profile if it describes anything other than sRGB; empty otherwise.
  let profile: [UInt8]
  /// The container's colour code points in place of a profile, if they describe anything other than
  /// sRGB.
  let codePoints: CodePoints?
  /// The delay of each frame, in milliseconds.
  let delays: [CInt]
  /// The loop count as libvips defines it: 0 means forever.
  let loop: Int
  /// The damage that makes the source fail.
  let failOn: FailOn
  /// The damage that makes opening the source fail; damaged pixels are found when they are decoded
  /// for the result.
  let headerFailOn: FailOn

  /// Reads the header.
  ///
  /// - Throws: `ImageError.undecodable` or `.unsupportedKind`, within `.ofVariant` if only a later
  ///   frame is so; `.invalidParameter` if the frame does not exist.
  init(
    of source: UnsafeRawBufferPointer, as format: ImageFormat, frame: Int?, failOn: FailOn
  ) throws(ImageError) {
    self.failOn = failOn
    headerFailOn = min(failOn, .truncated)
    if format == .tiff { try TIFFKind(of: source, directory: 0)?.check() }
    var image = try Loader.describe(source, as: format, failOn: failOn)
    let counted = max(1, image.integer("n-pages") ?? 1)
    var pages = 1
    var page = frame
    // For other formats libvips counts something else, for example resolution levels of a JPEG 2000
    // or all directories of a TIFF.
    switch format {
    case .gif, .webp, .heic, .avif: pages = counted
    case .tiff:
      let directories = TIFF.pages(of: source, directories: counted)
      pages = directories.count
      let directory = directories[min(frame ?? 0, pages - 1)]
      page = frame == nil && directory == 0 ? nil : directory
    default: page = nil
    }
    undecodedFrames = UndecodedAnimation.frames(of: source, as: format)
    if let frame {
      guard frame < pages else {
        let kept =
          undecodedFrames > 1 ? "one frame alone is decoded" : "the source has one frame"
        throw .invalidParameter(
          name: "frame", value: "\(frame)",
          allowed: pages == 1
            ? "\(kept), 0" : "the source has \(pages) frames, 0 to \(pages - 1)")
      }
    }
    isLaterFrame = (frame ?? 0) > 0
    // Without a page number libvips opens a HEIC's primary image, which may not be the first.
    if let page, page > 0 || format == .heic || format == .avif {
      do throws(ImageError) {
        if format == .tiff { try TIFFKind(of: source, directory: page)?.check() }
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
    hasPalette = image.hasPalette
    pixelBytes = image.pixelBytes
    resolution = image.resolution
    profile = image.foreignProfile
    delays = image.integers("delay")
    loop = image.integer("loop") ?? 0
    codePoints =
      switch format {
      case .heic, .avif: HEIFContainer.codePoints(of: source)
      case .png:
        PNGColour(of: source).codePoints.flatMap {
          CodePoints(primaries: $0.primaries, transfer: $0.transfer)
        }
      default: nil
      }
    orientation =
      format.traits.decoderTurns ? .up : Orientation(tag: image.integer("orientation"))
  }

  /// Whether `pages` are the frames of an animation.
  var isAnimation: Bool { pages > 1 && (format == .gif || format == .webp) }

  /// Returns the scale at which a vector has at most `pixels`, since its nominal size is unbounded;
  /// 1 for other formats.
  func scale(atMost pixels: Double) -> Double {
    format == .svg ? min(1, (pixels / size.area).squareRoot()) : 1
  }

  /// The size of the upright image.
  var uprightSize: PixelSize { orientation.swapsSides ? size.turned : size }

  /// Checks the source against its limits. A vector has no pixels of its own; `Geometry` limits its
  /// rendered size.
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

  /// Returns the pages to open for a result of `frames` frames.
  func pages(frames: Int) -> Loader.Pages {
    frames > 1 ? .all : page.map(Loader.Pages.one) ?? .first
  }

  /// Returns the number of frames of the result: all frames of an animation, or 1.
  ///
  /// The result is animated unless the output format holds no frames, or the request asks for a
  /// still, a single frame or a placeholder. Without a requested format GIF holds the frames.
  func frames(for transform: Transform) -> Int {
    let output = transform.output
    let kept = output.keepsFormat ? format.kept(hasAlpha: hasAlpha) : nil
    let keepsFrames = output.isAnimated && (output.format ?? kept)?.traits.holdsFrames ?? true
    return isAnimation && page == nil && keepsFrames && transform.product == .image ? pages : 1
  }

  /// Returns the frames of the source's animation that a result of `frames` frames lacks; 0 if the
  /// request asks for one.
  func droppedFrames(from frames: Int, for transform: Transform) -> Int {
    guard transform.output.isAnimated, transform.selection.frame == nil else { return 0 }
    return (isAnimation ? pages : undecodedFrames) - frames
  }
}

/// Detects formats by their signatures. A source of an unknown format never reaches a loader.
enum Sniffer {
  /// Returns the format of an image.
  ///
  /// - Throws: `ImageError.unsupportedFormat` if the format is unknown or not in `allowed`.
  static func format(of bytes: UnsafeRawBufferPointer, allowed: Set<ImageFormat>)
    throws(ImageError) -> ImageFormat
  {
    guard let format = FormatSigns.format(of: bytes) else {
      throw .unsupportedFormat(detail: description(of: bytes))
    }
    guard allowed.contains(format) else {
      throw .unsupportedFormat(detail: "\(format.rawValue) is disabled")
    }
    return format
  }

  /// Describes bytes of no known format: an HTML page by its title, which often says why there is
  /// no image, other bytes by the first ones.
  private static func description(of bytes: UnsafeRawBufferPointer) -> String {
    let start = Array(bytes.prefix(4_096))
    let lower = start.map { (0x41...0x5a).contains($0) ? $0 | 0x20 : $0 }
    func find(_ text: String) -> Int? {
      lower.indices.first { lower[$0...].starts(with: text.utf8) }
    }
    guard find("<html") != nil || find("<!doctype html") != nil else {
      let first = start.prefix(16).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }
      return "\(bytes.count) bytes starting \(first.joined(separator: " "))"
    }
    let tag = find("<title").map { start[$0...].drop { $0 != UInt8(ascii: ">") }.dropFirst() }
    let title = String(
      decoding: (tag ?? []).prefix { $0 != UInt8(ascii: "<") }.prefix(200), as: UTF8.self)
    let words = title.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    return words.isEmpty ? "an HTML page" : "an HTML page, '\(words)'"
  }
}

/// APNGs, image sequences of AVIF and HEIC, and animated JPEG XLs.
enum UndecodedAnimation {
  /// Returns the number of frames; 1 for a still and for other formats.
  static func frames(of source: UnsafeRawBufferPointer, as format: ImageFormat) -> Int {
    min(max(format.codec.undecodedFrames(source), 1), Int(Int32.max))
  }

  static func framesOfHEIF(_ file: UnsafeRawBufferPointer) -> Int {
    HEIFTrack.all(in: file).filter { $0.handler == "pict" }.map(\.samples).max() ?? 1
  }

  /// An `acTL` before the pixels makes a PNG an animation; each frame begins with an `fcTL` (PNG,
  /// third edition, 11.3.6).
  static func framesOfPNG(_ file: UnsafeRawBufferPointer) -> Int {
    var chunks = PNGChunks(file)
    var stated: Int?
    while stated == nil, let chunk = try? chunks.next(), !chunk.isOf("IDAT") {
      if chunk.isOf("acTL") { stated = try? ByteReader(chunk.content).number(at: 0, width: 4) }
    }
    guard let stated else { return 1 }
    var count = 0
    while count < stated, let chunk = try? chunks.next() {
      if chunk.isOf("fcTL") { count += 1 }
    }
    return count
  }

  /// libjxl reads the headers of an animation's frames, and skips their pixels.
  static func framesOfJXL(_ file: UnsafeRawBufferPointer) -> Int {
    guard let decoder = JxlDecoderCreate(nil) else { return 1 }
    defer { JxlDecoderDestroy(decoder) }
    let events = JXL_DEC_BASIC_INFO.rawValue | JXL_DEC_FRAME.rawValue
    guard JxlDecoderSubscribeEvents(decoder, CInt(events)) == JXL_DEC_SUCCESS,
      JxlDecoderSetInput(
        decoder, file.baseAddress?.assumingMemoryBound(to: UInt8.self), file.count)
        == JXL_DEC_SUCCESS
    else { return 1 }
    JxlDecoderCloseInput(decoder)
    var count = 0
    while true {
      switch JxlDecoderProcessInput(decoder) {
      case JXL_DEC_BASIC_INFO:
        var information = JxlBasicInfo()
        guard JxlDecoderGetBasicInfo(decoder, &information) == JXL_DEC_SUCCESS,
          information.have_animation != 0
        else { return 1 }
      case JXL_DEC_FRAME: count += 1
      default: return count
      }
    }
  }
}
