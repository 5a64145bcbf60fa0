// JobCostTests: what a job takes is estimated from headers, and one that takes too long is refused
// before it is begun.

import Core
import FoundationEssentials
import TestSupport
import Testing

@testable import ImagingPipeline

@Suite(.onOwnThreads) struct JobCostTests {
  /// Returns the estimate of a job that is not begun.
  private static func cost(
    of source: [UInt8], _ change: (inout Transform) -> Void = { _ in }
  ) throws -> JobCost {
    try #require(try Made.costs(of: source, change: change).last)
  }

  private static func allEffects(_ transform: inout Transform) {
    transform.effects.blur = 2.5
    transform.effects.sharpen = 3
    transform.effects.saturation = 2
    transform.effects.radius = .maximum
  }

  /// Noise of 300 by 200 pixels, as busy as a photograph or more.
  private static func noise(frames: Int = 1) -> [Pixels] {
    var random = SeededGenerator(seed: 1)
    return (0..<frames).map { _ in
      Pixels(width: 300, height: 200) { _, _ in
        let value = UInt8.random(in: 100...140, using: &random)
        return [value, value &+ 20, 90]
      }
    }
  }

  // MARK: Measured kinds

  /// A kind of job with the nanoseconds that a pixel takes, measured in a release build.
  struct Kind: Sendable, CustomTestStringConvertible {
    let suffix: String
    let nanoseconds: ClosedRange<Double>
    var change: @Sendable (inout Transform) -> Void = { _ in }
    var testDescription: String { "\(suffix) \(nanoseconds)" }
  }

  /// Decoding alone: a placeholder is not encoded. Estimates are within half and double of these.
  static let decoded = [
    Kind(suffix: ".jpg", nanoseconds: 4...18),
    Kind(suffix: ".jpg[interlace]", nanoseconds: 10...40),
    Kind(suffix: ".png", nanoseconds: 8...33),
    Kind(suffix: ".png[interlace]", nanoseconds: 11...44),
    Kind(suffix: ".gif", nanoseconds: 10...41),
    Kind(suffix: ".tif", nanoseconds: 4...20),
    Kind(suffix: ".avif[effort=0]", nanoseconds: 10...56),
    Kind(suffix: ".heic[Q=50,compression=hevc,effort=0]", nanoseconds: 20...80),
    // With its profile's conversion. The estimate covers lossless sources, too, which take 80 flat.
    Kind(suffix: ".jxl[effort=3]", nanoseconds: 28...130),
    Kind(suffix: ".jp2", nanoseconds: 64...256),
  ]

  @Test(arguments: decoded)
  func `decoding is estimated within a factor of two`(kind: Kind) throws {
    let source = try TestImages.encode(try #require(Self.noise().first), as: kind.suffix)
    let cost = try Self.cost(of: source) { $0.format = .tiff }
    let encoding = 60_000 * 70e-9
    #expect(kind.nanoseconds.contains((cost.seconds - encoding) * 1e9 / 60_000))
  }

  static let effects = [
    Kind(suffix: ".bmp", nanoseconds: 55...220) { $0.effects.blur = 2.5 },
    Kind(suffix: ".bmp", nanoseconds: 48...194) { $0.effects.blur = 100 },
    Kind(suffix: ".bmp", nanoseconds: 15...60) { $0.effects.blur = 0.5 },
    Kind(suffix: ".bmp", nanoseconds: 75...300) { $0.effects.sharpen = 10 },
    Kind(suffix: ".bmp", nanoseconds: 37...146) { $0.effects.brightness = 1.5 },
    Kind(suffix: ".bmp", nanoseconds: 8...34) { $0.effects.isGrayscale = true },
    Kind(suffix: ".bmp", nanoseconds: 30...120) { $0.sizing.angle = 0.1 },
    Kind(suffix: ".bmp", nanoseconds: 100...410) {
      $0.effects.blur = 2.5
      $0.effects.sharpen = 3
    },
  ]

  @Test(arguments: effects)
  func `each effect is estimated for each pixel of each frame`(kind: Kind) throws {
    let frames = Self.noise(frames: 3)
    let still = try TestImages.encode(try #require(frames.first), as: ".png")
    let animation = try TestImages.animation(frames, as: ".webp[lossless]")
    for (source, pixels) in [(still, 60_000.0), (animation, 180_000)] {
      let plain = try Self.cost(of: source) { $0.format = .webp }
      let changed = try Self.cost(of: source) {
        $0.format = .webp
        kind.change(&$0)
      }
      #expect(kind.nanoseconds.contains((changed.seconds - plain.seconds) * 1e9 / pixels))
    }
  }

  // MARK: Refusals

  @Test func `effects on millions of pixels are refused before they start, plain results are not`()
    throws
  {
    let source = TestImages.blackPNG(width: 5_000, height: 5_000)
    #expect(source.count < 20_000)
    let error = Made.error(source, change: Self.allEffects)
    guard case .ofVariant(.tooCostly)? = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(try !Self.cost(of: source).isExpensive(ImagingLimits()))
    #expect(
      try !Self.cost(of: source) {
        Self.allEffects(&$0)
        $0.width = 1_000
      }.isExpensive(ImagingLimits()))
  }

  @Test func `a bitmap of a kilobyte in runs waits as an expensive job`() throws {
    var bitmap = CodedBitmap(size: PixelSize(width: 12_000, height: 12_000), depth: 8)
    bitmap.compression = 1
    bitmap.palette = (0...255).map { [UInt8($0), 0, 0] }
    bitmap.runs = [0, 1]
    let source = bitmap.file
    #expect(source.count == 1_080)
    #expect(try Self.cost(of: source) { $0.width = 300 }.isExpensive(ImagingLimits()))
  }

  @Test func `images in a vector count, a watermark counts`() throws {
    // Given: 200 images of 860 by 860 pixels in a drawing of 40 by 40
    let image = Data(TestImages.blackPNG(width: 860, height: 860)).base64EncodedString()
    func vector(_ count: Int) -> [UInt8] {
      let images = (0..<count).map { _ in
        "<image width='40' height='40' href='data:image/png;base64,\(image)'/>"
      }
      return Array(
        ("<svg xmlns='http://www.w3.org/2000/svg' width='40' height='40'>"
          + images.joined() + "</svg>").utf8)
    }
    #expect(try Self.cost(of: vector(200)).isExpensive(ImagingLimits()))
    #expect(try !Self.cost(of: vector(2)).isExpensive(ImagingLimits()))
    // A watermark that alone takes 2 s
    let limits = ImagingLimits { $0.maximumSecondsOfPixels = 0.1 }
    let small = try TestImages.png(width: 30, height: 20)
    let mark = TestImages.blackPNG(width: 9_000, height: 9_000)
    let error = Made.error(small, limits: limits, mark: Mark(mark))
    #expect(error?.code == "too_costly")
  }

  @Test func `hundreds of ordinary frames, and a large photograph made small, are not refused`()
    throws
  {
    // Given: 20 of the 300 frames of 480 by 270 pixels
    let frames = try TestImages.animation(Self.noise(frames: 4), as: ".gif")
    let share = 300.0 * 480 * 270 / (4 * 60_000)
    let limits = ImagingLimits()
    for format in [ImageFormat.webp, .gif] {
      let cost = try Self.cost(of: frames) { $0.format = format }
      #expect(cost.seconds * share < limits.maximumSeconds)
      #expect((cost.seconds - cost.secondsOfFrames) * share < limits.maximumSecondsOfPixels)
    }
    // 100 megapixels in the header alone
    var photo = try TestImages.jpeg(width: 64, height: 48)
    let frame = try #require(photo.indices.first { photo[$0...].starts(with: [0xff, 0xc0]) })
    photo.replaceSubrange(frame + 5..<frame + 9, with: [0x27, 0x10, 0x27, 0x10])
    photo += [UInt8](repeating: 0, count: 20 << 20)
    #expect(try !Self.cost(of: photo) { $0.width = 1_000 }.isExpensive(limits))
    #expect(try Self.cost(of: photo) { $0.format = .avif }.seconds < limits.maximumSecondsOfPixels)
  }

  // MARK: Parts

  /// Returns sources with too many parts, and the same with as many as are allowed.
  private static func crowded(_ name: String, _ count: Int) throws -> [UInt8] {
    func repeated(_ part: [UInt8]) -> [UInt8] {
      Array([[UInt8]](repeating: part, count: count).joined())
    }
    let jpeg = try TestImages.jpeg(width: 64, height: 48, progressive: true, bare: true)
    let exif = repeated([0xff, 0xe1, 0, 8] + Array("Exif".utf8) + [0, 0])
    switch name {
    case "jpeg": return jpeg[..<2] + exif + jpeg[2...]
    case "jpeg, between scans":
      let scan = try #require(jpeg.indices.last { jpeg[$0...].starts(with: [0xff, 0xda]) })
      return jpeg[..<scan] + exif + jpeg[scan...]
    case "png":
      let png = try TestImages.png(width: 64, height: 48)
      return png[..<33] + repeated(CodedPNG.chunk("prVt", content: [])) + png[33...]
    case "gif":
      let gif = try TestImages.gif(width: 4, height: 4, frames: 1)
      return gif.dropLast() + repeated([0x21, 0xfe, 0]) + [0x3b]
    case "webp":
      let webp = try TestImages.bareWebP(width: 64, height: 48, isExtended: true)
      let chunks = webp[12...] + repeated(Array("abcd".utf8) + [0, 0, 0, 0])
      let length = chunks.count + 4
      return webp[..<4] + (0..<4).map { UInt8(truncatingIfNeeded: length >> (8 * $0)) }
        + Array("WEBP".utf8) + chunks
    default:
      return try TestImages.avif(width: 64, height: 48)
        + repeated([0, 0, 0, 8] + Array("free".utf8))
    }
  }

  @Test(arguments: [
    ("jpeg", 5_000), ("jpeg, between scans", 5_000), ("png", 100_000), ("gif", 100_000),
    ("webp", 100_000), ("avif", 100_000),
  ])
  func `a source of too many parts is refused before a library reads them`(
    name: String, limit: Int
  ) throws {
    let error = Made.error(try Self.crowded(name, limit + 1)) { $0.width = 8 }
    #expect(error?.code == "too_costly" && error?.isOfSource == true)
    #expect(Made.error(try Self.crowded(name, 500)) { $0.width = 8 } == nil)
  }

  @Test func `a JPEG with hundreds of scans of many megapixels is too costly, one with few is not`()
    throws
  {
    func scans(_ bytes: [UInt8]) -> Int {
      bytes.withUnsafeBytes { SourceCost.counts(of: $0).scans }
    }
    // Given: a progressive JPEG, which has 6 to 12 scans
    let whole = try TestImages.jpeg(width: 64, height: 48, progressive: true)
    let few = scans(whole)
    #expect((6...12).contains(few))
    #expect(Made.error(whole) == nil)
    // The last scan is repeated, and the header claims 144 megapixels
    let last = try #require(whole.indices.last { whole[$0...].starts(with: [0xff, 0xda]) })
    let scan = whole[last..<whole.count - 2]
    var bytes = Array(whole.dropLast(2)) + (0..<200).flatMap { _ in scan } + [0xff, 0xd9]
    #expect(scans(bytes) == few + 200)
    let frame = try #require(bytes.indices.first { bytes[$0...].starts(with: [0xff, 0xc2]) })
    bytes.replaceSubrange(frame + 5..<frame + 9, with: [0x2e, 0xe0, 0x2e, 0xe0])
    // When
    let error = Made.error(bytes) { $0.width = 40 }
    // Then: the fault is the source's, not its description's
    #expect(error?.code == "too_costly" && error?.isOfSource == true)
    #expect(Made.error(bytes) { $0.product = .info(nil) } == nil)
  }

  // MARK: Jobs

  private static func animation(_ format: String) throws -> [UInt8] {
    format == "gif"
      ? try TestImages.animation(
        (0..<20).map {
          Pixels.scene(width: 80, height: 40).cut(x: $0, y: 0, width: 60, height: 40)
        }, as: ".gif")
      : try TestImages.animatedWebP(width: 60, height: 40, frames: 20)
  }

  @Test(arguments: ["gif", "webp"])
  func `the cost of an animation grows with its frames, and is higher as a GIF`(format: String)
    throws
  {
    // Given: 20 frames, whose colours take 200 ms as a GIF; as a WebP they take 5 ms
    let source = try Self.animation(format)
    let limits = ImagingLimits { $0.maximumSeconds = 0.1 }
    // When, then: the variant is to blame, and others can be had
    let error = Made.error(source, limits: limits, width: 50, format: .gif)
    guard case .ofVariant(.tooCostly)? = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(Made.error(source, limits: limits) { $0.format = .webp } == nil)
    #expect(Made.error(source, limits: limits) { $0.frame = 0 } == nil)
    #expect(Made.error(source, limits: limits) { $0.product = .info(nil) } == nil)
  }

  @Test(arguments: [
    "jpeg", "png", "gif", "webp", "tiff", "avif", "heic", "jxl", "jp2",
  ])
  func `decoding has a cost in every format`(kind: String) throws {
    let limits = ImagingLimits { $0.maximumSeconds = 1e-9 }
    let error = Made.error(try HostileTests.source(kind), limits: limits) { $0.width = 8 }
    #expect(error?.code == "too_costly" && error?.isOfSource == true)
  }

  @Test func `a JPEG that is decoded at an eighth of its size costs a fraction`() throws {
    // Given: 750,000 pixels, 15 ns each when they are decoded
    let scene = Pixels.scene(width: 100, height: 75)
    let source = try TestImages.encode(scene, as: ".jpg", zoom: 10)
    let progressive = try TestImages.encode(scene, as: ".jpg[interlace]", zoom: 10)
    // When, then
    #expect(try Self.cost(of: source) { $0.width = 1_000 }.seconds > 0.011)
    #expect(try Self.cost(of: source) { $0.width = 100 }.seconds < 0.005)
    // Its coefficients are read all the same.
    #expect(try Self.cost(of: progressive) { $0.width = 1_000 }.seconds > 0.015)
    #expect(try Self.cost(of: progressive) { $0.width = 100 }.seconds < 0.008)
  }

  @Test func `a search for quality costs several encodes`() throws {
    let source = try TestImages.jpeg(width: 300, height: 200)
    var limits = ImagingLimits()
    // 60,000 pixels: 0.6 ms to decode, 0.5 to encode once.
    limits.maximumSeconds = 0.002
    #expect(Made.error(source, limits: limits) { $0.format = .jpeg } == nil)
    let error = Made.error(source, limits: limits, format: .jpeg) { $0.maxBytes = 9_000 }
    #expect(error?.code == "too_costly")
  }
}
