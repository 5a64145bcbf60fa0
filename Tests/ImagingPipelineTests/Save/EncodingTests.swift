// EncodingTests: what encoders are asked for beside the quality, and sources that are passed.

import Core
import ImagingPipeline
import TestSupport
import Testing

@Suite(.onOwnThreads) struct EncodingTests {
  @Test(arguments: [ImageFormat.webp, .jxl], [false, true])
  func `a lossless result has every pixel`(format: ImageFormat, alpha: Bool) throws {
    // given: also colours that nobody sees
    let scene = Pixels.scene(width: 61, height: 47, alpha: alpha)
    let source = try TestImages.encode(scene, as: ".png")
    // when
    let made = try Made(source, format: format) { $0.output.isLossless = true }
    let lossy = try Made(source, format: format)
    // then
    #expect(try made.pixels().values == scene.values && made.quality == nil)
    #expect(try lossy.pixels().values != scene.values)
  }

  @Test func `a lossless AVIF differs by rounding alone, and others do not change`() throws {
    let source = try TestImages.png(width: 64, height: 64)
    let plain = try Made(source, format: .png).pixels()
    let made = try Made(source, format: .avif) { $0.output.isLossless = true }
    #expect(try made.pixels().largestDifference(to: plain) <= 2)
    for format in [ImageFormat.jpeg, .png] {
      let lossless = try Made(source, format: format) { $0.output.isLossless = true }
      #expect(lossless.bytes == (try Made(source, format: format).bytes))
    }
  }

  /// The sampling factors of the first component are in the frame header (ITU-T T.81, B.2.2).
  @Test(arguments: [(50, ChromaSampling.full, 0x11), (95, .quarter, 0x22)])
  func `the chroma of a JPEG is as asked for`(
    quality: Int, chroma: ChromaSampling, factors: UInt8
  ) throws {
    let source = try TestImages.png(width: 64, height: 64)
    let made = try Made(source, format: .jpeg, quality: quality) { $0.output.chroma = chroma }
    let header = try #require(
      made.bytes.indices.dropLast(12).first {
        made.bytes[$0] == 0xff && [0xc0, 0xc2].contains(made.bytes[$0 + 1])
      })
    #expect(made.bytes[header + 11] == factors)
    let full = try Made(source, format: .avif, quality: 50) { $0.output.chroma = .full }
    let usual = try Made(source, format: .avif, quality: 50) { $0.output.chroma = .quarter }
    #expect(full.bytes != usual.bytes)
  }

  @Test(arguments: [(2, 1), (3, 1), (5, 2), (16, 4), (200, 4), (256, 8)])
  func `the colours of a PNG fit into its palette`(colours: Int, bits: UInt8) throws {
    let source = try TestImages.png(width: 64, height: 64)
    let made = try Made(source, format: .png) { $0.output.colours = colours }
    // IHDR: bit depth and colour type (PNG, third edition, 11.2.1).
    #expect(made.bytes[24] == bits && made.bytes[25] == 3)
    let values = try made.pixels()
    let found = Set((0..<64 * 64).map { values[$0 % 64, $0 / 64] })
    #expect(found.count <= colours)
    let gif = try Made(source, format: .gif) { $0.output.colours = colours }
    #expect(gif.bytes.count <= (try Made(source, format: .gif).bytes.count))
  }

  @Test func `sources of the kinds that pass are sent as they are`() throws {
    let animation = try TestImages.gif(width: 40, height: 30, frames: 3)
    let moving = try Made(animation, width: 20, format: .webp) { $0.output.passed = .animated }
    #expect(moving.format == .gif && moving.frames == 3)
    #expect(moving.size == PixelSize(width: 40, height: 30))
    let vector = TestImages.svg(width: 40, height: 30)
    let drawn = try Made(vector, width: 20) { $0.output.passed = [.animated, .vector] }
    #expect(drawn.format == .svg && drawn.bytes == vector)
    let still = try TestImages.png(width: 40, height: 30)
    let shrunk = try Made(still, width: 20) { $0.output.passed = [.animated, .vector] }
    #expect(shrunk.size.width == 20)
    for source in [still, try TestImages.heic(width: 64, height: 64)] {
      let passed = try Made(source, width: 20) { $0.output.passed = .all }
      #expect(passed.size.width > 20 && passed.bytes.count <= source.count)
    }
  }

  @Test func `a turned source keeps what turns it, and a larger one is not passed`() throws {
    let turned = try TestImages.jpeg(width: 48, height: 32, orientation: 6)
    let passed = try Made(turned, width: 10) { $0.output.passed = .all }
    #expect(passed.bytes == turned)
    #expect(passed.size == (try Made(turned).size))
    var limits = ImagingLimits()
    limits.maximumResultPixels = 100
    let small = try Made(turned, limits: limits) { $0.output.passed = .all }
    #expect(small.size.pixels <= 100)
  }
}
