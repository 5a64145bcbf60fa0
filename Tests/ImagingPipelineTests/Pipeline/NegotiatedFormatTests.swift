// NegotiatedFormatTests: the first accepted format that can hold the result is chosen.

import Model
import TestSupport
import Testing

@Suite(.onOwnThreads) struct NegotiatedFormatTests {
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
}
