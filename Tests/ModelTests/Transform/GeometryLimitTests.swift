// GeometryLimitTests: limits of geometry, and what holds for random requests.

import Core
import TestSupport
import Testing

@Suite(.onOwnThreads) struct GeometryLimitTests {
  @Test func `a vector image is rendered at any size up to the limit`() {
    #expect(
      geometry(width: 10, height: 10, isVector: true, w: 500).canvas
        == size(width: 500, height: 500))
    #expect(
      geometry(width: 10, height: 10, isVector: true, w: 500, limitBytes: 40_000).canvas
        == size(width: 100, height: 100))
  }

  @Test
  func `the result limit applies to each frame, and the pixel limit to all frames together`() {
    #expect(
      geometry(width: 1000, height: 1000, frames: 100, maximumPixels: 100_000_000).scaledDownFrom
        == nil)
    let result = geometry(
      width: 10, height: 10, frames: 100, maximumPixels: 1_000_000, w: 1000, enlarge: true)
    #expect(
      result.canvas == size(width: 100, height: 100)
        && result.scaledDownFrom == size(width: 1000, height: 1000))
  }

  @Test(arguments: Fit.allCases, [1, 10, 100])
  func `no request exceeds the result limit, in the result or an intermediate`(
    fit: Fit, frames: Int
  ) {
    for (width, height) in [(10, 10), (1, 5_000), (6_000, 4_000)] {
      let result = geometry(
        width: width, height: height, frames: frames, maximumResultPixels: 1_000_000, w: 65_535,
        h: 60_000, fit: fit, enlarge: true, limitBytes: .max)
      #expect(result.canvas.pixels <= 1_000_000)
      #expect(result.canvas.pixels * frames <= max(1_000_000, width * height * frames))
      #expect(result.image.pixels <= max(1_000_000, width * height))
    }
  }

  @Test(arguments: Fit.allCases)
  func `extreme requests stay within the limits`(fit: Fit) {
    let result = geometry(
      width: 1, height: 10_000_000, w: 65_535, h: 65_535, scale: 10, fit: fit, enlarge: true,
      limitBytes: .max)
    #expect(result.canvas.pixels <= 150_000_000 && result.image.pixels <= 150_000_000)
    #expect(result.canvas.width >= 1 && result.canvas.height >= 1)
  }

  @Test func `no side exceeds the maximum length of an image`() {
    // given: room for the pixels, but not for one of the sides
    let result = geometry(width: 1, height: 10_000_000, isVector: true, w: 100)
    let cut = geometry(width: 1_000_000, height: 1, w: 50, h: 50, fit: .cover, enlarge: true)
    // then
    #expect(result.canvas == size(width: 1, height: 1_000_000))
    #expect(cut.image.width <= 10_000_000 && cut.scaledDownFrom == size(width: 50, height: 50))
  }

  @Test func `a box scales like the geometry without limits and growth`() throws {
    var generator = SeededGenerator(seed: 2)
    for _ in 0..<2_000 {
      // given
      let own = size(
        width: .random(in: 1...4_000, using: &generator),
        height: .random(in: 1...4_000, using: &generator))
      var transform = Transform()
      transform.width = .random(in: 1...900, using: &generator)
      if Bool.random(using: &generator) {
        transform.height = .random(in: 1...900, using: &generator)
      }
      transform.fit = [.inside, .outside, .fill, .cover].randomElement(using: &generator) ?? .fill
      transform.scale = [nil, 0.3, 2].randomElement(using: &generator) ?? nil
      // when
      let box = try #require(SizeBox(transform.sizing))
      let result = geometry(
        width: own.width, height: own.height, maximumPixels: .max / 8, maximumResultPixels: .max / 8
      ) {
        $0 = transform
        $0.enlarge = true
        $0.limitBytes = .max
      }
      // then
      guard result.scaledDownFrom == nil else { continue }
      #expect(box.imageSize(width: Double(own.width), height: Double(own.height)) == result.image)
    }
    #expect(SizeBox(Sizing()) == nil)
  }

  @Test(arguments: Fit.allCases)
  func `random requests have consistent geometry`(fit: Fit) {
    var generator = SeededGenerator(seed: 1)
    for _ in 0..<2_000 {
      // given
      let width = Int.random(in: 1...4_000, using: &generator)
      let height = Int.random(in: 1...4_000, using: &generator)
      let box = (
        Int.random(in: 1...3_000, using: &generator), Int.random(in: 1...3_000, using: &generator)
      )
      let limit = Int.random(in: 4...60_000_000, using: &generator)
      // when
      let result = geometry(
        width: width, height: height, w: box.0, h: box.1, fit: fit, limitBytes: limit)
      // then
      let padded = geometry(
        width: width, height: height, w: box.0, h: box.1, fit: fit, limitBytes: limit
      ) {
        $0.sizing.padding = Edges([width, 1, height, 0]) ?? Edges()
        $0.sizing.minHeight = box.1
      }
      let turned = geometry(
        width: width, height: height, w: box.0, h: box.1, fit: fit, limitBytes: limit
      ) {
        $0.sizing.angle = Double(width)
        $0.sizing.padding.left = height
      }
      #expect(turned.canvas.pixels * 4 <= limit || turned.canvas == size(width: 1, height: 1))
      #expect(padded.canvas.pixels * 4 <= limit || padded.canvas == size(width: 1, height: 1))
      #expect(result.canvas.pixels * 4 <= limit || result.canvas == size(width: 1, height: 1))
      #expect(result.image.width <= width && result.image.height <= height)
      if fit == .inside { #expect(result.canvas.width <= box.0 && result.canvas.height <= box.1) }
      if fit != .contain { #expect(!result.isPadded) }
      if ![.cover, .coverDown, .auto].contains(fit) { #expect(!result.isCut) }
    }
  }
}
