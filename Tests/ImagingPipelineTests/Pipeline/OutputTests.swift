// OutputTests: format, quality and determinism of results.

import Core
import TestSupport
import Testing

@testable import ImagingPipeline

@Suite(.onOwnThreads) struct OutputTests {
  @Test func `by default alpha gives PNG, an animation GIF and all else JPEG`() throws {
    #expect(try Made(try TestImages.jpeg(width: 20, height: 10)).format == .jpeg)
    #expect(try Made(try TestImages.png(width: 20, height: 10)).format == .jpeg)
    #expect(try Made(try TestImages.png(width: 20, height: 10, alpha: true)).format == .png)
    #expect(try Made(try TestImages.webp(width: 20, height: 10, alpha: true)).format == .png)
    #expect(try Made(try TestImages.tiff(width: 20, height: 10)).format == .jpeg)
    #expect(try Made(try TestImages.avif(width: 64, height: 64)).format == .jpeg)
    #expect(try Made(try TestImages.heic(width: 64, height: 64)).format == .jpeg)
    #expect(try Made(try TestImages.gif(width: 20, height: 10, frames: 3)).format == .gif)
    #expect(try Made(try TestImages.animatedWebP(width: 20, height: 10, frames: 3)).format == .gif)
    // libvips's encoder gives every GIF an alpha, and opaque alpha counts like any other.
    #expect(try Made(try TestImages.gif(width: 20, height: 10, frames: 1)).format == .png)
    #expect(try Made(TestImages.svg(width: 20, height: 10)).format == .png)
  }

  @Test func `the source's format is kept if it can hold the result`() throws {
    let alpha = Pixels.scene(width: 64, height: 64, alpha: true)
    let kept: [([UInt8], ImageFormat, Int)] = try [
      (TestImages.jpeg(width: 64, height: 64), .jpeg, 1),
      (TestImages.png(width: 64, height: 64), .png, 1),
      (TestImages.webp(width: 64, height: 64), .webp, 1),
      (TestImages.animatedWebP(width: 64, height: 64, frames: 3), .webp, 3),
      (TestImages.gif(width: 64, height: 64, frames: 3), .gif, 3),
      (TestImages.tiff(width: 64, height: 64), .tiff, 1),
      (TestImages.avif(width: 64, height: 64), .avif, 1),
      (TestImages.jxl(alpha), .jxl, 1),
      (TestImages.heic(width: 64, height: 64), .jpeg, 1),
      (TestImages.jp2(alpha), .png, 1),
      (TestImages.svg(width: 64, height: 64), .png, 1),
    ]
    for (source, format, frames) in kept {
      let made = try Made(source, width: 32) { $0.output.keepsFormat = true }
      #expect((made.format, made.frames) == (format, frames))
    }
    // Corners need alpha, which a JPEG does not have.
    let round = try Made(kept[0].0, width: 32) {
      $0.output.keepsFormat = true
      $0.effects.radius = .maximum
    }
    #expect(round.format == .jpeg)
  }

  @Test func `alpha is flattened onto the background in every format if asked for`() throws {
    let source = try TestImages.encode(
      Pixels(width: 8, height: 8, bands: 4) { x, _ in [200, 100, 50, x < 4 ? 0 : 255] }, as: ".png")
    for format in [ImageFormat.png, .webp, nil] {
      let made = try Made(source, format: format) {
        $0.output.flattens = true
        $0.output.isLossless = true
        $0.background = Color(red: 1, green: 2, blue: 3)
      }
      #expect(made.format == format ?? .jpeg)
      let pixels = try made.pixels()
      #expect(pixels.size == PixelSize(width: 8, height: 8) && pixels[0, 0].count == 3)
      if format != nil { #expect(pixels[0, 0] == [1, 2, 3] && pixels[7, 0] == [200, 100, 50]) }
    }
  }

  @Test(arguments: 1...8)
  func `an image is left as it is stored if asked for`(tag: Int) throws {
    let turned = try TestImages.jpeg(width: 48, height: 32, orientation: tag)
    let made = try Made(turned, format: .png) { $0.selection.isUpright = false }
    let plain = try Made(turned, format: .png)
    let swaps = tag > 4
    #expect(made.size == (swaps ? plain.size.turned : plain.size))
    #expect((made.bytes == plain.bytes) == (tag == 1))
    // The lossless way, too: the source's own bytes have no orientation any more.
    let own = try Made(turned, format: .jpeg) { $0.selection.isUpright = false }
    #expect(try own.pixels().psnr(to: made.pixels()) > 28)
  }

  @Test(arguments: ImageFormat.outputs)
  func `a named format is the format of the bytes`(format: ImageFormat) throws {
    // given
    let source = try TestImages.jpeg(width: 600, height: 400)
    // when
    let made = try Made(source, width: 300, format: format)
    // then
    #expect(made.format == format && made.size == PixelSize(width: 300, height: 200))
    #expect(try made.pixels().size == made.size)
    // GIF has only 256 colours.
    let likeness = try made.pixels().psnr(to: .scene(width: 300, height: 200))
    #expect(likeness > (format == .gif ? 24 : 30))
  }

  @Test(arguments: [ImageFormat.heic, .svg, .jp2, .bmp, .ico])
  func `a format that cannot be written is refused by name`(format: ImageFormat) throws {
    let source = try TestImages.jpeg(width: 20, height: 10)
    guard
      case .invalidParameter("format", format.rawValue, _) = Made.error(
        source, change: { $0.format = format })
    else {
      Issue.record("not refused")
      return
    }
  }

  @Test func `a side too long for a format is refused if named and avoided otherwise`() throws {
    // given: a WebP holds 16,383 pixels per side, a JPEG 65,500
    let wide = try TestImages.encode(
      Pixels(width: 66_000, height: 1, color: [9, 9, 9]), as: ".png")
    // when, then
    #expect(Made.error(wide) { $0.format = .webp }?.parameter == "format")
    #expect(Made.error(wide) { $0.format = .jpeg }?.parameter == "format")
    #expect(Made.error(wide) { $0.format = .gif }?.parameter == "format")
    #expect(try Made(wide).format == .png)
  }

  @Test(arguments: [ImageFormat.jpeg, .webp, .avif, .jxl])
  func `a higher quality gives more bytes`(format: ImageFormat) throws {
    // given
    let source = try TestImages.png(width: 240, height: 160)
    // when
    let made = try [20, nil, 95].map { quality in
      try Made(source, format: format, quality: quality)
    }
    let explicit = try Made(source, format: format, quality: format.traits.defaultQuality)
    // then
    #expect(made[0].bytes.count < made[1].bytes.count)
    #expect(made[1].bytes.count < made[2].bytes.count)
    #expect(explicit.bytes == made[1].bytes)
  }

  @Test func `progressive results are interlaced if the format supports it`() throws {
    let source = try TestImages.jpeg(width: 600, height: 400)
    func made(_ format: ImageFormat, progressive: Bool) throws -> [UInt8] {
      try Made(source, width: 300, format: format) { $0.progressive = progressive }.bytes
    }
    for isWanted in [false, true] {
      // The frame marker of a progressive JPEG; PNG's interlace method; the flag of GIF's image
      // descriptor.
      let jpeg = try made(.jpeg, progressive: isWanted)
      let markers = zip(jpeg, jpeg.dropFirst()).filter { $0 == 0xff && (0xc0...0xc2).contains($1) }
      #expect(markers.first?.1 == (isWanted ? 0xc2 : 0xc0))
      #expect(try made(.png, progressive: isWanted)[28] == (isWanted ? 1 : 0))
      #expect(try made(.webp, progressive: isWanted).starts(with: Array("RIFF".utf8)))
      let gif = try made(.gif, progressive: isWanted)
      let descriptor = try #require(
        gif.indices.dropLast(9).first {
          gif[$0] == 0x2c && gif[($0 + 1)...($0 + 4)].allSatisfy { $0 == 0 }
        })
      #expect((gif[descriptor + 9] & 0x40 != 0) == isWanted)
    }
  }

  @Test(arguments: ImageFormat.outputs)
  func `transparency is kept in every format that supports it`(format: ImageFormat) throws {
    // given: opaque above, increasingly transparent to the left below
    let source = try TestImages.png(width: 80, height: 60, alpha: true)
    // when
    let pixels = try Made(source, format: format, quality: 95).pixels()
    // then
    guard format != .jpeg else {
      #expect(
        pixels.bands == 3 && isClose(pixels.rgb(x: 2, y: 58), to: [250, 250, 250], within: 10))
      return
    }
    #expect(pixels.bands == 4)
    for (x, y) in [(10, 10), (70, 5), (40, 20)] { #expect(pixels[x, y][3] > 250) }
    // GIF's alpha is binary.
    let alphas = [2, 40, 78].map { Int(pixels[$0, 45][3]) }
    let expected = format == .gif ? [0, 255, 255] : [8, 129, 250]
    #expect(zip(alphas, expected).allSatisfy { abs($0 - $1) <= 8 }, "\(alphas)")
    #expect(isClose(pixels.rgb(x: 70, y: 50), to: [230, 220, 40], within: 16))
  }

  @Test(arguments: ImageFormat.outputs)
  func `grey stays grey in every format`(format: ImageFormat) throws {
    // given
    let grey = Pixels(width: 64, height: 48, bands: 1) { x, y in [UInt8(x * 3 + y)] }
    // when
    let pixels = try Made(try TestImages.encode(grey, as: ".png"), format: format, quality: 90)
      .pixels()
    // then
    var spread = 0
    var difference = 0
    for y in 0..<48 {
      for x in 0..<64 {
        let colour = pixels.rgb(x: x, y: y).map { Int($0) }
        spread = max(spread, (colour.max() ?? 0) - (colour.min() ?? 0))
        difference = max(difference, abs(colour[1] - Int(grey[x, y][0])))
      }
    }
    #expect(spread <= 3 && difference <= 12)
    if [.jpeg, .png].contains(format) { #expect(pixels.bands == 1) }
  }

  @Test(arguments: ImageFormat.outputs)
  func `equal requests give equal bytes, from every kind of source`(format: ImageFormat)
    throws
  {
    // given
    let sources = [
      try TestImages.jpeg(width: 300, height: 200, orientation: 6),
      try TestImages.png(width: 150, height: 100, alpha: true),
      try TestImages.gif(width: 30, height: 20, frames: 4),
      try TestImages.animatedWebP(width: 30, height: 20, frames: 3),
      try TestImages.webp(width: 150, height: 100),
      try TestImages.tiff(width: 150, height: 100),
      try TestImages.avif(width: 64, height: 64),
      try TestImages.heic(width: 64, height: 64),
      TestImages.svg(width: 300, height: 200),
    ]
    for source in sources {
      // when
      let made = try (0..<2).map { _ in
        try Made(source, width: 100, format: format) { $0.maxBytes = 4_000 }
      }
      let plain = try (0..<2).map { _ in try Made(source) { $0.format = format } }
      // then
      #expect(made[0].bytes == made[1].bytes && made[0].digest == made[1].digest)
      #expect(plain[0].bytes == plain[1].bytes)
    }
  }

  @Test func `encoder threads do not change the bytes`() throws {
    // Within libheif, libaom has threads and divides larger images among them.
    let source = try TestImages.encode(.scene(width: 900, height: 600, alpha: true), as: ".png")
    let made = try (0..<3).map { _ in try Made(source) { $0.format = .avif }.bytes }
    #expect(made[0] == made[1] && made[1] == made[2])
  }

  @Test func `the digest is half of the SHA-256, and timings are present`() throws {
    // given, when
    let made = try Made(try TestImages.jpeg(width: 30, height: 20))
    let other = try Made(try TestImages.jpeg(width: 30, height: 20)) { $0.quality = 50 }
    // then
    #expect(made.digest.count == 32 && made.digest != other.digest)
    #expect(made.digest.allSatisfy { "0123456789abcdef".contains($0) })
    let stages = Timings.Stage.allCases.filter { made.timings[$0] != nil }
    #expect(stages == [.decode, .transform, .encode])
  }

  @Test(arguments: [
    (1, 1), (2, 1), (7, 5), (33, 21), (99, 66), (100, 67), (149, 100), (151, 100), (299, 200),
    (301, 200), (599, 399), (600, 400), (601, 400), (700, 467), (1201, 801), (1999, 3),
  ])
  func `the computed size is the actual size`(width: Int, height: Int) throws {
    // given
    let source = try TestImages.jpeg(width: 600, height: 400)
    // when
    let made = try Made(source, width: width, height: height, fit: .fill) { $0.enlarge = true }
    // then
    #expect(made.size == PixelSize(width: width, height: height))
    #expect(try made.pixels().size == made.size)
  }

  @Test(arguments: [(10_000, 1), (1, 10_000), (10_000, 3), (1, 1)])
  func `the narrowest images are rendered`(width: Int, height: Int) throws {
    for source in [
      try TestImages.jpeg(width: width, height: height, orientation: 6),
      try TestImages.png(width: width, height: height, alpha: true),
      try TestImages.webp(width: width, height: height),
    ] {
      for fit in [Fit.inside, .cover, .contain] {
        let made = try Made(source, width: 100, height: 100, fit: fit)
        #expect(try made.pixels().size == made.size && made.size.width <= 100)
      }
      for format in ImageFormat.outputs {
        let made = try Made(source, width: 100, height: 100, format: format)
        #expect(try made.pixels().size == made.size)
      }
      #expect(try Made(source) { $0.limitBytes = 1 }.size.width <= 50)
    }
  }

  @Test func `a large image is scaled down and reports its original size`() throws {
    // given
    let source = try TestImages.jpeg(width: 525, height: 345)
    // when
    let made = try Made(source) { $0.limitBytes = 629_145 }
    let tiny = try Made(source) { $0.limitBytes = 1 }
    // then
    #expect(made.size == PixelSize(width: 489, height: 321))
    #expect(made.scaledDownFrom == PixelSize(width: 525, height: 345))
    #expect(try made.pixels().size == made.size)
    #expect(tiny.size == PixelSize(width: 1, height: 1))
  }

  @Test func `a result too large for memory is streamed`() throws {
    // given: 4.2 million pixels, rotated and not
    for tag in [1, 6] {
      let source = try TestImages.jpeg(width: 2520, height: 1680, orientation: tag)
      // when
      let made = try Made(source) { $0.format = .jpeg }
      // then
      #expect(made.size == PixelSize(width: 2520, height: 1680))
      #expect(isClose(try made.pixels().corners[1], to: [30, 200, 40]))
    }
  }

  /// libjxl refuses the distances that libvips computes for the lowest qualities.
  @Test func `a lower quality of JPEG XL has no more bytes`() throws {
    let png = try TestImages.encode(.textured(width: 200, height: 150), as: ".png")
    var last = 0
    for quality in [1, 2, 4, 5, 8, 15, 29, 30, 60, 100] {
      let file = try Made(png, format: .jxl, quality: quality)
      #expect(file.bytes.count >= last, "\(quality)")
      last = file.bytes.count
    }
  }

  @Test func `the first accepted format is used, regardless of the source`() throws {
    let jpeg = try TestImages.jpeg(width: 40, height: 30)
    let png = try TestImages.png(width: 40, height: 30, alpha: true)
    for source in [jpeg, png] {
      #expect(try Made(source) { $0.accepted = [.avif, .webp] }.format == .avif)
      #expect(try Made(source) { $0.accepted = [.webp, .avif] }.format == .webp)
      #expect(try Made(source) { $0.accepted = [.jxl] }.format == .jxl)
    }
    #expect(try Made(jpeg) { $0.accepted = [] }.format == .jpeg)
    #expect(try Made(png) { $0.accepted = [.jpeg] }.format == .png)
    #expect(
      try Made(jpeg, format: .png) { $0.accepted = [.avif] }.format == .png)
    // A format that is not an output is skipped.
    #expect(try Made(jpeg) { $0.accepted = [.heic, .webp] }.format == .webp)
  }

  @Test func `an animation uses the first accepted format with animation, or GIF`() throws {
    let source = try TestImages.gif(width: 40, height: 30, frames: 3)
    let moving = try Made(source) { $0.accepted = [.avif, .jxl, .webp] }
    #expect(moving.format == .webp && moving.frames == 3)
    let fallen = try Made(source) { $0.accepted = [.avif, .jxl] }
    #expect(fallen.format == .gif && fallen.frames == 3)
    let still = try Made(source) {
      $0.accepted = [.avif, .webp]
      $0.isAnimated = false
    }
    #expect(still.format == .avif && still.frames == 1)
  }

  @Test func `a result too long for a format uses the next one`() throws {
    // given: an AVIF holds 16,384 pixels per side, a WebP one less; flipped, so that no source is
    // returned
    let longest = try TestImages.encode(
      Pixels(width: 16_384, height: 1, color: [9, 9, 9]), as: ".png")
    let longer = try TestImages.encode(
      Pixels(width: 16_385, height: 1, color: [9, 9, 9]), as: ".png")
    // when, then
    #expect(
      try Made(longest) {
        $0.accepted = [.webp, .avif]
        $0.flip = .both
      }.format == .avif)
    let avif = try Made(longest) {
      $0.accepted = [.avif]
      $0.flip = .both
    }
    #expect(try avif.pixels().size.width == 16_384)
    #expect(
      try Made(longer) {
        $0.accepted = [.avif, .webp]
        $0.flip = .both
      }.format == .jpeg)
    #expect(Made.error(longer) { $0.format = .avif }?.parameter == "format")
  }

  @Test func `a large image uses a slow format only if it is named`() throws {
    // given: opaque, and slightly above 4 megapixels
    let source = try TestImages.encode(
      Pixels(width: 63, height: 63, color: [90, 120, 60]), as: ".png[compression=1]", zoom: 32)
    // when, then
    #expect(try Made(source) { $0.accepted = [.avif, .jxl, .webp] }.format == .webp)
    #expect(
      try Made(source, width: 100) { $0.accepted = [.avif] }.format == .avif)
    #expect(try Made(source) { $0.format = .avif }.format == .avif)
  }

  private static let size = PixelSize(width: 40, height: 30)

  /// Starts libvips, which two threads must not do at the same time.
  init() { TestImages.start() }

  /// Returns the error's code; `nil` if the bytes pass.
  private func fault(
    _ bytes: [UInt8], _ size: PixelSize = size, as format: ImageFormat, isEncodedHere: Bool
  ) throws -> String? {
    let encoded = Encoded(bytes: try GLibBytes(copying: bytes), size: size, quality: nil)
    do throws(ImageError) {
      try encoded.check(as: format, isEncodedHere: isEncodedHere)
      return nil
    } catch {
      return error.code
    }
  }

  @Test(arguments: [ImageFormat.jpeg, .png, .webp, .gif, .tiff], [false, true])
  func `a result of another size or format is refused`(
    format: ImageFormat, isEncodedHere: Bool
  ) throws {
    let bytes = try TestImages.encode(
      .scene(width: 40, height: 30), as: format == .tiff ? ".tif" : ".\(format.rawValue)")
    #expect(try fault(bytes, as: format, isEncodedHere: isEncodedHere) == nil)
    #expect(
      try fault(
        bytes, PixelSize(width: 30, height: 40), as: format, isEncodedHere: isEncodedHere)
        == "internal")
    let other: ImageFormat = format == .png ? .jpeg : .png
    #expect(try fault(bytes, as: other, isEncodedHere: isEncodedHere) == "internal")
  }

  @Test func `a source's own JPEG that ends before its scan is refused`() throws {
    let bytes = try TestImages.encode(.scene(width: 40, height: 30), as: ".jpg")
    let scan = try #require(bytes.firstRange(of: [0xff, 0xda]))
    #expect(
      try fault(Array(bytes[..<scan.lowerBound]), as: .jpeg, isEncodedHere: false) == "internal")
  }
}
