// PlaceholderTests: placeholders as text for /info and as images, and hashes beside their reference
// implementations.

import Core
import FoundationEssentials
import TestSupport
import Testing

@testable import ImagingPipeline

@Suite(.onOwnThreads) struct PlaceholderTests {
  private func text(_ source: [UInt8], as kind: PlaceholderKind) throws -> String {
    try #require(try SourceInfo(source, placeholder: kind).placeholder).value
  }

  private func shown(
    _ source: [UInt8], as kind: PlaceholderKind, change: (inout Transform) -> Void = { _ in }
  ) throws -> Made {
    try Made(source) {
      $0.product = .placeholder(kind)
      change(&$0)
    }
  }

  @Test(arguments: [1, 6, 8])
  func `a low-quality placeholder is a tiny version of the upright image`(tag: Int) throws {
    // given: few pixels, some on an edge of the scene, so each is the mean of a hundred
    let scene = Pixels.scene(width: 160, height: 100)
    let mean = Pixels(width: 16, height: 10) { x, y in
      (0..<3).map { band in
        let sum = (0..<100).reduce(0) { $0 + Int(scene[x * 10 + $1 % 10, y * 10 + $1 / 10][band]) }
        return UInt8(sum / 100)
      }
    }
    let photo = try TestImages.jpeg(width: 1800, height: 1200, orientation: tag)
    // when
    let made = try shown(photo, as: .lqip)
    // then
    #expect(made.format == .jpeg)
    #expect(made.size == PixelSize(width: 16, height: 10))
    #expect(made.bytes.count < 1_000)
    #expect(try made.pixels().psnr(to: mean) > 22)
    #expect(
      try text(photo, as: .lqip)
        == "data:image/jpeg;base64," + Data(made.bytes).base64EncodedString())
  }

  @Test func `the largest low-quality placeholder has less than 1,200 bytes`() throws {
    // given: noise, which does not compress, with alpha
    var state: UInt32 = 1
    let noise = Pixels(width: 16, height: 16, bands: 4) { _, _ in
      (0..<4).map { _ in
        state = state &* 1_664_525 &+ 1_013_904_223
        return UInt8(state >> 24)
      }
    }
    // when
    let made = try shown(try TestImages.encode(noise, as: ".png"), as: .lqip)
    // then
    #expect(made.format == .png)
    #expect(made.bytes.count < 1_200)
  }

  @Test func `a BlurHash placeholder is computed from the upright image`() throws {
    // given
    let scene = Pixels.scene(width: 64, height: 42)
    let exact = BlurHash(
      of: SmallImage(scene.size) { x, y in scene.rgb(x: x, y: y) + [255] }
    ).image(PixelSize(width: 32, height: 21))
    let photo = try TestImages.jpeg(width: 1800, height: 1200, orientation: 3)
    // when
    let made = try shown(photo, as: .blurhash)
    let hash = try text(photo, as: .blurhash)
    // then
    // The first digit of four terms by three.
    #expect(hash.first == "L")
    #expect(made.format == .png)
    let expected = Pixels(width: 32, height: 21) { x, y in
      let start = (y * 32 + x) * 4
      return Array(exact.values[start..<start + 3])
    }
    #expect(try made.pixels().psnr(to: expected) > 30)
  }

  @Test func `a ThumbHash keeps transparency`() throws {
    // given: transparent in its lower left
    let source = try TestImages.png(width: 300, height: 200, alpha: true)
    // when
    let made = try shown(source, as: .thumbhash)
    // then
    #expect(made.size == PixelSize(width: 32, height: 19))
    let pixels = try made.pixels()
    #expect(pixels.bands == 4)
    #expect(pixels[2, 17][3] < 100)
    #expect(pixels[30, 2][3] > 200)
    #expect(Data(base64Encoded: try text(source, as: .thumbhash)) != nil)
  }

  @Test func `the colour placeholder is the mean of linear light`() throws {
    // given: half black, half white, which is 188 in sRGB: ((0.5 · 1.055) ^ (1 / 2.4)) …
    let halves = Pixels(width: 64, height: 64) { x, _ in
      x < 32 ? [0, 0, 0] : [255, 255, 255]
    }
    let source = try TestImages.encode(halves, as: ".png")
    // when, then
    #expect(try text(source, as: .color) == "#bcbcbc")
    let made = try shown(source, as: .color)
    #expect(made.size == PixelSize(width: 1, height: 1))
    #expect(try made.pixels()[0, 0] == [188, 188, 188])
  }

  @Test func `colour and BlurHash placeholders include the background`() throws {
    // given
    let clear = try TestImages.encode(
      Pixels(width: 40, height: 30, color: [9, 9, 9, 0]), as: ".png")
    let plain = try TestImages.encode(
      Pixels(width: 40, height: 30, color: [20, 200, 90]), as: ".png")
    // when, then
    #expect(try text(clear, as: .color) == "#ffffff")
    #expect(try text(plain, as: .color) == "#14c85a")
    let red = Color(red: 255, green: 0, blue: 0)
    for kind in [PlaceholderKind.color, .blurhash] {
      let made = try shown(clear, as: kind) { $0.background = red }
      #expect(isClose(try made.pixels().rgb(x: 0, y: 0), to: [255, 0, 0]), "\(kind)")
    }
  }

  @Test(arguments: PlaceholderKind.allCases)
  func `an animation's placeholder shows its first frame`(kind: PlaceholderKind) throws {
    let source = try TestImages.gif(width: 60, height: 40, frames: 3)
    let made = try shown(source, as: kind)
    #expect(made.frames == 1)
    #expect(isClose(try made.pixels().rgb(x: 0, y: 0), to: TestImages.frameColor(0), within: 20))
    let third = try shown(source, as: kind) { $0.frame = 2 }
    #expect(isClose(try third.pixels().rgb(x: 0, y: 0), to: TestImages.frameColor(2), within: 20))
  }

  @Test(arguments: PlaceholderKind.allCases)
  func `a placeholder shows the requested part with its size in points`(
    kind: PlaceholderKind
  ) throws {
    // given, when
    let made = try shown(try TestImages.jpeg(width: 1200, height: 800), as: kind) {
      $0.width = 320
      $0.height = 320
      $0.fit = .cover
    }
    // then
    #expect(made.size.width == made.size.height)
    #expect(abs(Double(made.size.width) / made.density - 320) < 8)
    #expect(made.scaledDownFrom == nil)
  }

  @Test func `an image smaller than a placeholder keeps its size`() throws {
    let source = try TestImages.png(width: 5, height: 3)
    #expect(try shown(source, as: .lqip).size == PixelSize(width: 5, height: 3))
    #expect(try shown(source, as: .blurhash).size == PixelSize(width: 5, height: 3))
    #expect(try shown(try TestImages.png(width: 900, height: 2), as: .lqip).size.height == 1)
  }

  @Test(arguments: PlaceholderKind.allCases)
  func `equal requests for placeholders give equal bytes`(kind: PlaceholderKind) throws {
    let source = try TestImages.png(width: 90, height: 60, alpha: true)
    #expect(try shown(source, as: kind).bytes == shown(source, as: kind).bytes)
    #expect(try text(source, as: kind) == text(source, as: kind))
  }

  // The vectors come from the PyPI packages blurhash-python 1.2.2 (woltapp's C) and thumbhash-rs
  // 0.1.0 (evanw's Rust), for images with the pixels of `pattern`. ThumbHash has no vectors for
  // images of one colour: their amplitudes are rounding errors, scaled up to 4 bits.

  private static func pattern(width: Int, height: Int, alpha: Bool = false) -> SmallImage {
    SmallImage(PixelSize(width: width, height: height)) { x, y in
      [
        UInt8((x * 7 + y * 3) % 256), UInt8((255 - x * 5 + y * 2) & 255), UInt8(x * y % 256),
        alpha ? UInt8((x * x + y * 11) % 256) : 255,
      ]
    }
  }

  private static func pixel(_ image: SmallImage, x: Int, y: Int) -> [UInt8] {
    let start = (y * image.size.width + x) * 4
    return Array(image.values[start..<start + 4])
  }

  // MARK: BlurHash

  @Test(arguments: [
    (32, 24, 4, 3, "LlHpE^3eU{vPTATpx@OrSHs;S~ov"), (32, 24, 1, 1, "00HpE^"),
    (32, 24, 3, 4, "TlHpE^3eU{TATpx@SHs;S~otX9js"),
    (24, 32, 4, 3, "LbGKKT0yqKawCEt^kWZ;jokWgggb"), (20, 20, 4, 3, "LfCJsQ9?l[ilPIptkqadbCkXgFgL"),
    (
      20, 20, 9, 9,
      "|fCJsQ9?l[ilVtoxV]ofV[PIptkqadi%a5i{a#j[bCkXgFgLgLf#eseoerpHbWf9fkf#g3f}g1f7bWkCf+f#fmfOf*g1f~o_bHf5fmf#f*f*fhflX5k8f+fhfkfkf#f+fho{bHf5f*f*f#fSjra~X4kUf*fQf6fSfhflfj"
    ),
    (40, 5, 4, 3, "LxG,E48jOq,;%XO;kSoefhbaocbZ"), (3, 2, 4, 3, "L~1BG,hCZUlMlyg]f%g]g]g]g]g]"),
    (1, 1, 4, 3, "L~09dghVhVhVhVhVhVhVhVhVhVhV"),
  ])
  func `a BlurHash matches the reference`(
    width: Int, height: Int, across: Int, down: Int, text: String
  ) throws {
    let hash = BlurHash(of: Self.pattern(width: width, height: height), across: across, down: down)
    #expect(hash.text == text)
  }

  @Test func `the BlurHash of a white image matches the reference`() {
    let white = SmallImage(PixelSize(width: 16, height: 16)) { _, _ in [255, 255, 255, 255] }
    #expect(BlurHash(of: white).text == "LKTSUA~qfQ~q~qoffQoffQfQfQfQ")
  }

  @Test func `the specification's BlurHash is drawn like the reference`() throws {
    // given
    let hash = BlurHash(text: "LEHV6nWB2yk8pyo0adR*.7kCMdnj")
    // when
    let image = hash.image(PixelSize(width: 32, height: 32))
    // then
    let expected: [(Int, Int, [UInt8])] = [
      (0, 0, [135, 164, 177]), (31, 0, [137, 166, 181]), (0, 31, [136, 144, 147]),
      (31, 31, [133, 142, 147]), (16, 16, [158, 125, 108]), (7, 20, [139, 135, 138]),
    ]
    for (x, y, color) in expected { #expect(Self.pixel(image, x: x, y: y) == color + [255]) }
  }

  // MARK: ThumbHash

  @Test(arguments: [
    (32, 24, false, "oMkJLZAQVXiFemiVmGeIh1evDExi"),
    (32, 24, true, "oNmFFIYHEFWni5ZoaPPa8DV4dyghIGKYBg=="),
    (24, 32, false, "X8kNJRBAdpV4Z5h4iId3iIHffQ10"),
    (24, 32, true, "n8mJFAYXUGaJh6qHBsX991BIdHpnBRFVCQ=="),
    (20, 20, false, "3GkNNw5AdneVeXeXh4iHeIiHePao9zEI"),
    (20, 20, true, "nHmJHQgXUIa3eYaId0afmS+lVpUgs4SJdw=="),
    (40, 5, false, "2roFKaAEGjmjiXiILl8Hdnc="),
    (40, 5, true, "2+qBEYoWFh+wmIYOTwaIeBBCZnd3eIc="),
  ])
  func `a ThumbHash matches the reference`(
    width: Int, height: Int, alpha: Bool, text: String
  ) {
    let hash = ThumbHash(of: Self.pattern(width: width, height: height, alpha: alpha))
    #expect(Data(hash.bytes).base64EncodedString() == text)
  }

  @Test func `the ThumbHash of a transparent image matches the reference`() {
    let clear = SmallImage(PixelSize(width: 16, height: 16)) { _, _ in [0, 0, 0, 0] }
    #expect(
      Data(ThumbHash(of: clear).bytes).base64EncodedString()
        == "AAiCBQAAAAAAAAAAAAAAAAAAAAAAAAAAAA==")
  }

  @Test(arguments: [
    (
      (32, 24, false), (32, 23),
      [[0, 172, 0, 255], [191, 85, 35, 255], [63, 43, 58, 255], [143, 80, 76, 255]]
    ),
    (
      (24, 32, true), (26, 32),
      [[97, 136, 44, 0], [157, 171, 80, 109], [120, 77, 80, 55], [205, 179, 103, 100]]
    ),
    (
      (40, 5, false), (32, 5),
      [[0, 241, 0, 255], [118, 34, 2, 255], [0, 197, 22, 255], [99, 14, 111, 255]]
    ),
  ])
  func `a ThumbHash is drawn like the reference`(
    source: (Int, Int, Bool), size: (Int, Int), corners: [[Int]]
  ) {
    let image = ThumbHash(of: Self.pattern(width: source.0, height: source.1, alpha: source.2))
      .image
    #expect(image.size == PixelSize(width: size.0, height: size.1))
    let right = size.0 - 1
    let bottom = size.1 - 1
    for ((x, y), corner) in zip([(0, 0), (right, 0), (0, bottom), (right, bottom)], corners) {
      // The reference uses 32-bit floats.
      #expect(isClose(Self.pixel(image, x: x, y: y), to: corner.map { UInt8($0) }, within: 1))
    }
  }
}
