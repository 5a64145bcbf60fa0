// WatermarkTests: watermarks, compared with an independently computed composite.

import Core
import TestSupport
import Testing

@Suite(.onOwnThreads) struct WatermarkTests {
  /// Returns a mark with varying colour and alpha.
  private func mark(width: Int = 32, height: Int = 20, alpha: Bool = true) -> Pixels {
    Pixels(width: width, height: height, bands: alpha ? 4 : 3) { x, y in
      let color = [UInt8(x * 255 / width), UInt8(255 - y * 255 / height), 90]
      return alpha ? color + [UInt8(40 + 215 * x * y / (width * height))] : color
    }
  }

  private func png(_ pixels: Pixels) throws -> [UInt8] {
    try TestImages.encode(pixels, as: ".png[compression=1]")
  }

  @Test(arguments: [true, false], [true, false])
  func `a watermark is composited by its alpha and opacity`(
    frameHasAlpha: Bool, markHasAlpha: Bool
  ) throws {
    // given
    let scene = Pixels.scene(width: 90, height: 60, alpha: frameHasAlpha)
    let mark = mark(alpha: markHasAlpha)
    for opacity in [1, 0.4] {
      // when
      let made = try Made(
        try png(scene), mark: Mark(try png(mark)) { $0.opacity = opacity }
      ) { $0.format = .png }
      // then
      let wanted = scene.under(mark, x: 58, y: 40, opacity: opacity)
      #expect(try made.pixels().largestDifference(to: wanted) <= 1)
    }
  }

  @Test(arguments: [
    (Position.leftTop, 0, 0), (.top, 20, 0), (.rightTop, 41, 0), (.left, 0, 15),
    (.center, 20, 15), (.right, 41, 15), (.leftBottom, 0, 31), (.bottom, 20, 31),
    (.rightBottom, 41, 31), (.entropy, 20, 15), (.attention, 20, 15),
  ])
  func `a watermark touches the edges without a margin`(position: Position, x: Int, y: Int) throws {
    // given: 41 × 31 pixels of free space
    let scene = Pixels.scene(width: 61, height: 47)
    let mark = Pixels(width: 20, height: 16, color: [255, 0, 255])
    // when
    let made = try Made(try png(scene), mark: Mark(try png(mark)) { $0.position = position }) {
      $0.format = .png
    }
    // then: all other pixels are unchanged
    #expect(try made.pixels().values == scene.under(mark, x: x, y: y).values)
  }

  @Test func `an offset moves a watermark inward, as far as the edge`() throws {
    let scene = Pixels.scene(width: 61, height: 47)
    let mark = Pixels(width: 20, height: 16, color: [255, 0, 255])
    for (position, offset, x, y) in [
      (Position.rightBottom, Offset(x: .pixels(4), y: .share(0.1)), 37, 26),
      (.leftTop, Offset(x: .share(0.5), y: .pixels(-3)), 31, 0),
      (.center, Offset(x: .pixels(-7), y: .pixels(99)), 13, 31),
    ] {
      let made = try Made(
        try png(scene),
        mark: Mark(try png(mark)) { ($0.position, $0.offset) = (position, offset) }
      ) { $0.format = .png }
      #expect(try made.pixels().values == scene.under(mark, x: x, y: y).values)
    }
  }

  @Test func `the scale sets the watermark's width as a share of the result`() throws {
    // given
    let source = try TestImages.png(width: 400, height: 300)
    // when
    let made = try Made(
      source,
      mark: Mark(try TestImages.png(width: 320, height: 160, alpha: true)) {
        $0.scale = 0.25
        $0.position = .leftTop
      }, width: 200, format: .png)
    // then: 50 × 25 pixels of the 200 × 150
    let wanted = Pixels.scene(width: 200, height: 150).under(
      .scene(width: 50, height: 25, alpha: true), x: 0, y: 0)
    let pixels = try made.pixels()
    #expect(pixels.psnr(to: wanted) > 32)
    #expect(
      pixels.cut(x: 0, y: 0, width: 50, height: 25)
        .psnr(to: wanted.cut(x: 0, y: 0, width: 50, height: 25)) > 28)
    #expect(
      pixels.rgb(x: 60, y: 30)
        == (try Made(source, width: 200, format: .png)
          .pixels().rgb(x: 60, y: 30)))
  }

  @Test(arguments: [(1, 1, 40), (2, 1, 80), (1, 2, 20), (2, 2, 40)])
  func `without a scale, a watermark has its own size in points`(
    density: Int, ownDensity: Int, width: Int
  ) throws {
    // given: a mark 40 pixels wide
    let white = try png(Pixels(width: 400, height: 400, color: [255, 255, 255]))
    let black = try png(Pixels(width: 40, height: 10, color: [0, 0, 0]))
    // when
    let made = try Made(
      white, mark: Mark(black, density: ownDensity) { $0.position = .leftTop }, width: 200,
      format: .png
    ) { $0.scale = Double(density) }.pixels()
    // then
    let blacks = (0..<made.size.width).count { made[$0, 1].allSatisfy { $0 < 128 } }
    #expect(made.size.width == 200 * density && blacks == width)
  }

  @Test(arguments: [nil, 1.0], [(60, 60, 60, 20), (200, 30, 90, 30)])
  func `a watermark is never larger than the result`(
    share: Double?, sizes: (width: Int, height: Int, markWidth: Int, markHeight: Int)
  ) throws {
    // given: a mark of 300 × 100
    let scene = Pixels.scene(width: sizes.width, height: sizes.height)
    let blue = try png(Pixels(width: 300, height: 100, color: [0, 0, 255]))
    // when
    let made = try Made(try png(scene), mark: Mark(blue) { $0.scale = share }) { $0.format = .png }
    // then
    let small = Pixels(width: sizes.markWidth, height: sizes.markHeight, color: [0, 0, 255])
    let wanted = scene.under(
      small, x: sizes.width - sizes.markWidth, y: sizes.height - sizes.markHeight)
    #expect(try made.pixels().values == wanted.values)
  }

  @Test(arguments: [(3, 2), (32, 20), (61, 47), (130, 140)])
  func `a repeated watermark covers the result from the upper left corner`(width: Int, height: Int)
    throws
  {
    // given
    let scene = Pixels.scene(width: 157, height: 141)
    let tile = mark(width: width, height: height)
    // when
    let made = try Made(
      try png(scene),
      mark: Mark(try png(tile)) {
        $0.tiling = .all
        $0.position = .bottom
        $0.opacity = 0.7
      }
    ) { $0.format = .png }
    // then
    let all = Pixels(width: 157, height: 141, bands: 4) { tile[$0 % width, $1 % height] }
    let wanted = scene.under(all, x: 0, y: 0, opacity: 0.7)
    #expect(try made.pixels().largestDifference(to: wanted) <= 1)
  }

  @Test(
    arguments: [
      (.row, 9, 27, 7, 0), (.column, 9, 27, 0, 5), (.aligned, 9, 27, 0, 0), (.aligned, 9, 27, 7, 5),
      (.aligned, 150, 130, 200, 1), (.all, 0, 0, 7, 5),
    ] as [(WatermarkPlacement.Tiling, Int, Int, Int, Int)])
  func `tiles go on from the watermark's place on their axes, with gaps`(
    tiling: WatermarkPlacement.Tiling, x: Int, y: Int, across: Int, down: Int
  ) throws {
    // given
    let scene = Pixels.scene(width: 157, height: 141)
    let tile = mark(width: 6, height: 11)
    // when
    let made = try Made(
      try png(scene),
      mark: Mark(try png(tile)) {
        ($0.tiling, $0.position) = (tiling, .leftTop)
        $0.offset = Offset(x: .pixels(x), y: .pixels(y))
        $0.gap = Offset(x: .pixels(across), y: .pixels(down))
      }
    ) { $0.format = .png }
    // then
    let all = Pixels(width: 157, height: 141, bands: 4) { column, row in
      let (u, v) = (column - x + 6 + across, row - y + 11 + down)
      let place = (
        tiling == .column ? column - x : (u + 200 * (6 + across)) % (6 + across),
        tiling == .row ? row - y : (v + 200 * (11 + down)) % (11 + down)
      )
      guard (0..<6).contains(place.0), (0..<11).contains(place.1) else { return [0, 0, 0, 0] }
      return tile[place.0, place.1]
    }
    #expect(try made.pixels().largestDifference(to: scene.under(all, x: 0, y: 0)) <= 1)
  }

  @Test func `a density of its own replaces that of the watermark's name`() throws {
    let white = try png(Pixels(width: 200, height: 60, color: [255, 255, 255]))
    let black = try png(Pixels(width: 40, height: 10, color: [0, 0, 0]))
    for (density, width) in [(1.0, 40), (2, 20), (0.5, 80)] {
      let made = try Made(
        white,
        mark: Mark(black, density: 3) { ($0.density, $0.position) = (density, .leftTop) },
        width: 200, format: .png
      ).pixels()
      #expect((0..<200).count { made[$0, 1].allSatisfy { $0 < 128 } } == width)
    }
  }

  @Test func `a watermark is mended as sources are`() throws {
    func mark(_ colour: String) -> [UInt8] {
      Array(
        """
        <svg xmlns="http://www.w3.org/2000/svg" width="20" height="10">\
        <rect width="20" height="10" style="fill:\(colour)"/></svg>
        """.utf8)
    }
    let white = try png(Pixels(width: 40, height: 20, color: [255, 255, 255]))
    let plain = try Made(white, mark: Mark(mark("lime"))).bytes
    #expect(try Made(white, mark: Mark(mark("var(--c, lime)"))).bytes == plain)
    #expect(try Made(white, mark: Mark(TestCoding.gzip.encode(mark("lime")))).bytes == plain)
  }

  @Test func `a watermark also covers padding and background`() throws {
    // given
    let source = try png(Pixels(width: 80, height: 40, color: [0, 200, 0, 0]))
    let mark = Pixels(width: 20, height: 20, color: [255, 0, 0, 128])
    // when
    let made = try Made(
      source, mark: Mark(try png(mark)), width: 40, height: 40, fit: .contain, format: .jpeg,
      quality: 95
    ) { $0.background = Color(red: 0, green: 0, blue: 255) }.pixels()
    // then
    #expect(
      isClose(made.rgb(x: 32, y: 36), to: [128, 0, 127])
        && isClose(made.rgb(x: 32, y: 24), to: [128, 0, 127]))
    #expect(
      isClose(made.rgb(x: 8, y: 8), to: [0, 0, 255])
        && isClose(made.rgb(x: 8, y: 20), to: [0, 0, 255]))
  }

  @Test(arguments: [ImageFormat.gif, .webp])
  func `each frame of an animation gets the watermark and keeps its delay`(format: ImageFormat)
    throws
  {
    // given
    let delays = [40, 70, 100, 130]
    let source = try TestImages.animatedWebP(
      width: 96, height: 64, frames: 4, delays: delays, loop: 3)
    let mark = try png(Pixels(width: 24, height: 16, color: [250, 250, 0]))
    // when
    let made = try Made(
      source,
      mark: Mark(mark) {
        $0.scale = 0.25
        $0.position = .rightTop
      }, width: 48, format: format, quality: 95)
    // then
    #expect(made.frames == 4 && made.size == PixelSize(width: 48, height: 32))
    for frame in 0..<4 {
      let pixels = try made.pixels(frame: frame)
      #expect(isClose(pixels.rgb(x: 42, y: 3), to: [250, 250, 0], within: 20))
      #expect(isClose(pixels.rgb(x: 10, y: 20), to: TestImages.frameColor(frame), within: 20))
    }
    #expect(try TestImages.delays(of: made.bytes) == delays)
    #expect(try TestImages.loop(of: made.bytes) == 3)
  }

  @Test
  func `a grey image stays grey with a grey watermark and becomes colour with a coloured one`()
    throws
  {
    // given
    let grey = Pixels(width: 60, height: 40, bands: 1) { x, y in [UInt8(x * 4)] }
    let greyMark = Pixels(width: 20, height: 20, color: [200, 128])
    let redMark = Pixels(width: 20, height: 20, color: [255, 0, 0, 128])
    // when
    let underGrey = try Made(try png(grey), mark: Mark(try png(greyMark))) { $0.format = .png }
    let underRed = try Made(try png(grey), mark: Mark(try png(redMark))) { $0.format = .png }
    // then
    #expect(
      try underGrey.pixels().largestDifference(to: grey.under(greyMark, x: 40, y: 20)) <= 1)
    let colored = Pixels(width: 60, height: 40, bands: 3) { x, y in grey.rgb(x: x, y: y) }
    #expect(try underRed.pixels().largestDifference(to: colored.under(redMark, x: 40, y: 20)) <= 1)
  }

  @Test func `a grey watermark on a coloured image stays grey`() throws {
    let scene = Pixels.scene(width: 60, height: 40)
    let greyMark = Pixels(width: 20, height: 20, color: [200, 128])
    let made = try Made(try png(scene), mark: Mark(try png(greyMark))) { $0.format = .png }
    #expect(try made.pixels().largestDifference(to: scene.under(greyMark, x: 40, y: 20)) <= 1)
  }

  @Test
  func `a watermark may have an orientation, be a vector or be the first frame of an animation`()
    throws
  {
    // given
    let white = try png(Pixels(width: 120, height: 120, color: [255, 255, 255]))
    let plain = Pixels.scene(width: 120, height: 80)
    func marked(_ bytes: [UInt8]) throws -> Pixels {
      try Made(
        white,
        mark: Mark(bytes) {
          $0.scale = 1
          $0.position = .leftTop
        }
      ) {
        $0.format = .png
      }.pixels().cut(x: 0, y: 0, width: 120, height: 80)
    }
    // when, then
    for orientation in [1, 3, 6, 8] {
      let bytes = try TestImages.jpeg(width: 240, height: 160, orientation: orientation)
      #expect(try marked(bytes).psnr(to: plain) > 28, "orientation \(orientation)")
    }
    #expect(
      try marked(try TestImages.png(width: 240, height: 160, sixteenBits: true)).psnr(to: plain)
        > 28)
    let drawn = try marked(TestImages.svg(width: 12, height: 8))
    #expect(drawn.rgb(x: 10, y: 10) == [255, 0, 0] && drawn.rgb(x: 110, y: 70) == [0, 0, 255])
    #expect(drawn.rgb(x: 58, y: 70) == [255, 0, 0] && drawn.rgb(x: 61, y: 70) == [0, 0, 255])
    let gif = try TestImages.gif(width: 120, height: 80, frames: 3)
    #expect(isClose(try marked(gif).rgb(x: 60, y: 40), to: TestImages.frameColor(0)))
    let cmyk = try TestImages.cmykJPEG(width: 120, height: 80, color: [0, 255, 255, 0])
    let red = try marked(cmyk).rgb(x: 60, y: 40)
    #expect(red[0] > 180 && red[1] < 80 && red[2] < 80)
  }

  @Test func `a result too large for memory gets its watermark while streaming`() throws {
    // given: 6 megapixels, above the limit for results in memory, from a sequential decoder
    let source = try TestImages.jpeg(width: 3_000, height: 2_000)
    let mark = try png(Pixels(width: 300, height: 200, color: [255, 0, 255]))
    // when
    let made = try Made(source, mark: Mark(mark))
    // then
    let pixels = try made.pixels()
    #expect(made.size == PixelSize(width: 3_000, height: 2_000))
    #expect(isClose(pixels.rgb(x: 2_750, y: 1_850), to: [255, 0, 255]))
    #expect(pixels.corners.dropLast() == (try Made(source).pixels()).corners.dropLast())
  }

  @Test func `equal requests with a watermark give equal bytes`() throws {
    let source = try TestImages.jpeg(width: 200, height: 150)
    let mark = Mark(try png(mark())) {
      $0.scale = 0.2
      $0.opacity = 0.3
      $0.tiling = .all
    }
    let made = try (0..<3).map { _ in try Made(source, mark: mark) { $0.format = .webp }.digest }
    #expect(Set(made).count == 1)
    #expect(try Made(source) { $0.format = .webp }.digest != made[0])
  }

  @Test func `a hostile watermark is refused as a watermark error`() throws {
    // given
    let source = try TestImages.png(width: 40, height: 30)
    let bomb = try TestImages.png(width: 60, height: 60)
    var limits = ImagingLimits()
    limits.maximumPixels = 2_000
    // when, then
    #expect(
      Made.error(source, limits: limits, mark: Mark(bomb))
        == .watermark(.tooManyPixels(pixels: 3_600, limit: 2_000)))
    limits = ImagingLimits()
    limits.maximumFrames = 2
    #expect(
      Made.error(
        source, limits: limits, mark: Mark(try TestImages.gif(width: 4, height: 4, frames: 3)))
        == .watermark(.tooManyFrames(frames: 3, limit: 2)))
    limits.formats.remove(.svg)
    let svg = TestImages.svg(width: 8, height: 8)
    #expect(
      Made.error(source, limits: limits, mark: Mark(svg))
        == .watermark(.unsupportedFormat(detail: "svg is disabled")))
    for bytes in [
      Array(bomb.prefix(200)), Array(try TestImages.jpeg(width: 90, height: 90).dropLast(900)),
    ] {
      let error = Made.error(source, mark: Mark(bytes))
      #expect(error?.status == 422 && error?.code == "undecodable")
      #expect(error?.parameter == "watermark")
    }
    for bytes in [[], Array("no image".utf8)] {
      let error = Made.error(source, mark: Mark(bytes))
      #expect(error?.status == 415 && error?.parameter == "watermark")
    }
  }
}
