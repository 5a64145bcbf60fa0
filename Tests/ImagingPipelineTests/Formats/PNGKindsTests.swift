// PNGKindsTests: PNGs of every colour type, depth and transparency.

import Core
import TestSupport
import Testing

@Suite(.onOwnThreads) struct PNGKindsTests {
  private static func image(
    colorType: Int, depth: Int, width: Int = 37, height: Int = 21
  ) -> CodedPNG {
    var generator = SeededGenerator(seed: UInt64(colorType * 100 + depth))
    let count = width * height * CodedPNG.channels(colorType)
    return CodedPNG(
      size: PixelSize(width: width, height: height), colorType: colorType, depth: depth,
      samples: (0..<count).map { _ in .random(in: 0..<1 << depth, using: &generator) })
  }

  private static func palette(_ count: Int) -> [UInt8] {
    (0..<count).flatMap { (index: Int) -> [UInt8] in
      let red = index * 83 % 256
      let green = index * 29 % 256
      let blue = 255 - index * 7 % 256
      return [UInt8(red), UInt8(green), UInt8(blue)]
    }
  }

  /// Returns a sample in 8 bits.
  private static func byte(_ sample: Int, depth: Int) -> UInt8 {
    depth == 16 ? UInt8(sample >> 8) : UInt8(sample * 255 / (1 << depth - 1))
  }

  @Test(arguments: CodedPNG.kinds.indices, [false, true])
  func `every colour type and depth is decoded exactly`(kind: Int, isInterlaced: Bool) throws {
    // given
    let (colorType, depth) = CodedPNG.kinds[kind]
    var png = Self.image(colorType: colorType, depth: depth)
    png.isInterlaced = isInterlaced
    let palette = Self.palette(colorType == 3 ? 1 << depth : 0)
    if colorType == 3 { png.before = [("PLTE", palette)] }
    // when
    let pixels = try Made(png.bytes) { $0.format = .png }.pixels()
    // then: 16 bits become exactly 8
    let expected =
      colorType == 3
      ? png.samples.flatMap { palette[$0 * 3..<$0 * 3 + 3] }
      : png.samples.map { Self.byte($0, depth: depth) }
    #expect(pixels.size == png.size && pixels.values.count == expected.count)
    let maximum = depth == 16 ? 1 : 0
    #expect(zip(pixels.values, expected).allSatisfy { abs(Int($0) - Int($1)) <= maximum })
  }

  @Test func `a transparent value before the palette of an RGB image is ignored`() throws {
    var png = Self.image(colorType: 2, depth: 8)
    let plain = try Made(png.bytes) { $0.format = .png }.pixels()
    let value: [UInt8] = png.samples.prefix(3).flatMap { [0, UInt8($0)] }
    png.before = [("tRNS", value), ("PLTE", Self.palette(4))]
    #expect(try Made(png.bytes) { $0.format = .png }.pixels().values == plain.values)
    #expect(Made.error(png.bytes) { $0.width = 20 } == nil)
  }

  @Test(arguments: [1, 2, 4, 8])
  func `a palette may have alpha for its first colours`(depth: Int) throws {
    // given: transparency for all colours except the last
    var png = Self.image(colorType: 3, depth: depth)
    let count = 1 << depth
    let alphas = (0..<count - 1).map { UInt8($0 * 255 / count) }
    let palette = Self.palette(count)
    png.before = [("PLTE", palette), ("tRNS", alphas)]
    // when
    let made = try Made(png.bytes)
    // then
    #expect(made.format == .png)
    let pixels = try made.pixels()
    #expect(pixels.bands == 4)
    for (place, index) in png.samples.enumerated() {
      let alpha = index < alphas.count ? alphas[index] : 255
      let pixel = Array(pixels.values[place * 4..<place * 4 + 4])
      #expect(pixel[3] == alpha)
      #expect(alpha == 0 || Array(pixel[0..<3]) == Array(palette[index * 3..<index * 3 + 3]))
    }
  }

  @Test(arguments: [(0, 1), (0, 4), (0, 8), (0, 16), (2, 8), (2, 16)])
  func `grey and RGB may have one transparent value`(colorType: Int, depth: Int) throws {
    // given: the colour of the first pixel is transparent
    var png = Self.image(colorType: colorType, depth: depth)
    let channels = CodedPNG.channels(colorType)
    let key = Array(png.samples[0..<channels])
    png.before = [("tRNS", key.flatMap { CodedPNG.big($0, width: 2) })]
    // when
    let pixels = try Made(png.bytes).pixels()
    // then
    #expect(pixels.bands == channels + 1)
    for place in 0..<png.size.width * png.size.height {
      let sample = Array(png.samples[place * channels..<(place + 1) * channels])
      let alpha = pixels.values[place * pixels.bands + channels]
      #expect(alpha == (sample == key ? 0 : 255))
    }
  }

  @Test func `an animated PNG is rendered as its first frame`() throws {
    // given: animation chunks (PNG 3, 11.3.6) around two frames; the first is the image
    var first = CodedPNG(
      size: PixelSize(width: 4, height: 4), colorType: 2, depth: 8,
      samples: [Int](repeating: 200, count: 48))
    let second = CodedPNG(
      size: first.size, colorType: 2, depth: 8, samples: [Int](repeating: 20, count: 48))
    func control(_ number: Int) -> [UInt8] {
      CodedPNG.big(number, width: 4) + CodedPNG.big(4, width: 4) + CodedPNG.big(4, width: 4)
        + CodedPNG.big(0, width: 8)
        + [0, 1, 0, 10, 0, 0]
    }
    first.before = [
      ("acTL", CodedPNG.big(2, width: 4) + CodedPNG.big(0, width: 4)), ("fcTL", control(0)),
    ]
    first.after = [("fcTL", control(1)), ("fdAT", CodedPNG.big(2, width: 4) + second.data)]
    // when
    let made = try Made(first.bytes)
    let turned = try Made(first.bytes) { $0.flip = .both }
    // then: both as the source's own bytes, which are fewer, and encoded
    #expect(made.frames == 1 && made.format == .png && turned.format == .jpeg)
    for chunk in ["acTL", "fcTL", "fdAT"] { #expect(!made.bytes.contains(chunk)) }
    #expect(try made.pixels().rgb(x: 2, y: 2) == [200, 200, 200])
    #expect(isClose(try turned.pixels().rgb(x: 2, y: 2), to: [200, 200, 200], within: 2))
  }

  @Test(arguments: 1...8)
  func `the Exif orientation before a PNG's pixels is applied`(tag: Int) throws {
    // given
    let scene = Pixels.scene(width: 36, height: 24)
    let stored = scene.stored(forOrientation: tag)
    let png = CodedPNG(
      size: stored.size, colorType: 2, depth: 8, samples: stored.values.map { Int($0) })
    // when
    let made = try Made(CodedPNG.adding(orientation: tag, to: png.bytes)) { $0.format = .png }
    // then
    #expect(try made.pixels().values == scene.values)
    #expect(!made.bytes.contains("eXIf"))
  }
}
