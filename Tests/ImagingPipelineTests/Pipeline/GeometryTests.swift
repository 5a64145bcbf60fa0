// GeometryTests: sizes, positions and densities, computed without pixels.

import ImagingWire
import Model
import TestSupport
import Testing

@testable import ImagingPipeline

@Suite(.onOwnThreads) struct GeometryTests {
  private func geometry(
    _ width: Int, _ height: Int, density: Int = 1, frames: Int = 1, isVector: Bool = false,
    maximumPixels: Int = 150_000_000, maximumResultPixels: Int = 25_000_000,
    _ change: (inout Transform) -> Void = { _ in }
  ) -> Geometry {
    var transform = Transform()
    change(&transform)
    var limits = ImagingLimits()
    limits.maximumPixels = maximumPixels
    limits.maximumResultPixels = maximumResultPixels
    return Geometry(
      of: PixelSize(width: width, height: height), isVector: isVector, transform: transform,
      density: density, frames: frames, limits: limits)
  }

  private func size(_ width: Int, _ height: Int) -> PixelSize {
    PixelSize(width: width, height: height)
  }

  @Test func `nothing asked for changes nothing`() {
    let result = geometry(640, 480)
    #expect(result.canvas == size(640, 480) && result.image == size(640, 480))
    #expect(result.density == 1 && result.scaledDownFrom == nil)
    #expect(geometry(640, 480, density: 2).density == 2)
  }

  @Test func `scale counts in the source's own points`() {
    #expect(geometry(640, 480) { $0.scale = 0.5 }.canvas == size(320, 240))
    #expect(geometry(640, 480, density: 2) { $0.scale = 1 }.canvas == size(320, 240))
    #expect(geometry(640, 480, density: 3) { $0.scale = 1 }.canvas == size(213, 160))
    #expect(geometry(640, 480, density: 2) { $0.scale = 2 }.canvas == size(640, 480))
    #expect(geometry(640, 480, density: 2) { $0.scale = 1 }.density == 1)
  }

  @Test func `each side is rounded half away from zero and at least 1`() {
    #expect(geometry(5, 3) { $0.scale = 0.5 }.canvas == size(3, 2))
    #expect(geometry(1, 1000) { $0.scale = 0.01 }.canvas == size(1, 10))
    #expect(geometry(1000, 1) { $0.width = 10 }.canvas == size(10, 1))
  }

  @Test func `SDWebImage's boxes come out as they do there`() {
    #expect(geometry(5250, 3450) { ($0.width, $0.height) = (400, 300) }.canvas == size(400, 263))
    #expect(
      geometry(5250, 3450) { ($0.width, $0.height) = (4000, 4000) }.canvas == size(4000, 2629))
  }

  @Test func `a result above the limit shrinks by the root of the ratio`() {
    // given, when
    let result = geometry(5250, 3450)
    let tiny = geometry(5250, 3450) { $0.limitBytes = 1 }
    // then
    #expect(result.canvas == size(4892, 3214) && result.scaledDownFrom == size(5250, 3450))
    #expect(result.density == 0.9319)
    #expect(tiny.canvas == size(1, 1) && tiny.scaledDownFrom == size(5250, 3450))
    #expect(geometry(100, 100) { $0.limitBytes = 40_000 }.scaledDownFrom == nil)
    #expect(geometry(100, 100) { $0.limitBytes = 39_999 }.canvas == size(99, 99))
  }

  @Test func `nothing grows unless enlarge is on, and then the density says so`() {
    // given, when
    let kept = geometry(100, 50) { ($0.width, $0.scale) = (100, 2) }
    let grown = geometry(100, 50) { ($0.width, $0.scale, $0.enlarge) = (100, 2, true) }
    // then
    #expect(kept.canvas == size(100, 50) && kept.density == 1)
    #expect(grown.canvas == size(200, 100) && grown.density == 2)
    #expect(geometry(100, 50) { $0.scale = 3 }.density == 1)
    #expect(geometry(100, 50) { ($0.scale, $0.enlarge) = (3, true) }.canvas == size(300, 150))
  }

  @Test(
    arguments: [
      // density of the source, w, scale, then pixels and density of the result
      (640, 1, nil, nil, 640, 1), (640, 2, nil, nil, 640, 2), (640, 1, nil, 2, 640, 1),
      (640, 3, nil, 4, 640, 3), (640, 1, 300, nil, 300, 1), (640, 1, 300, 2, 600, 2),
      (640, 2, 300, nil, 300, 1), (640, 2, 300, 2, 600, 2),
      // Fewer pixels than requested, but enough for every point of the box.
      (400, 1, 300, 2, 400, 1.3333), (400, 2, 100, 5, 400, 4),
      // Fewer points than the box: shown at the source's size.
      (165, 1, 300, nil, 165, 1), (165, 1, 300, 2, 165, 1), (200, 2, 300, 3, 200, 2),
      // One pixel fewer than a box of one pixel per point changes nothing.
      (299, 2, 300, nil, 299, 1),
    ] as [(Int, Int, Int?, Double?, Int, Double)])
  func `the density says at which size an image is to be shown, never larger than it is`(
    side: Int, sourceDensity: Int, width: Int?, scale: Double?, pixels: Int, density: Double
  ) {
    for fit in [Fit.inside, .outside, .cover, .fill] {
      let result = geometry(side, side, density: sourceDensity) {
        ($0.width, $0.height, $0.scale, $0.fit) = (width, width, scale, fit)
      }
      #expect(result.canvas == size(pixels, pixels) && result.density == density)
    }
  }

  @Test func `what is padded to its box has the box's size in points`() {
    for scale in [1, 2] as [Double] {
      let result = geometry(100, 50) {
        ($0.width, $0.height, $0.scale, $0.fit) = (200, 200, scale, .contain)
      }
      #expect(result.canvas.width == Int(200 * scale) && result.density == scale)
    }
  }

  @Test func `a density is never so small that it would be sent as 0`() {
    #expect(geometry(100, 100) { $0.scale = 0.000_001 }.density == 0.001)
    #expect(geometry(12_000, 9_000) { $0.limitBytes = 1 }.density == 0.001)
    #expect(geometry(1, 1) { $0.width = 65_535 }.density == 1)
  }

  @Test func `scale multiplies the box`() {
    let result = geometry(1000, 500) { ($0.width, $0.height, $0.scale) = (33, 33, 1.5) }
    #expect(result.canvas == size(50, 25) && result.density == 1.5)
    let ofDensity2 = geometry(1000, 500, density: 2) { $0.width = 100 }
    #expect(ofDensity2.canvas == size(100, 50) && ofDensity2.density == 1)
  }

  @Test(arguments: [
    (Fit.inside, 100, 50, 100, 50), (.outside, 200, 100, 200, 100), (.cover, 200, 100, 100, 100),
    (.contain, 100, 50, 100, 100), (.fill, 100, 100, 100, 100),
  ])
  func `each fit does what it does in sharp`(
    fit: Fit, imageWidth: Int, imageHeight: Int, width: Int, height: Int
  ) {
    let result = geometry(400, 200) { ($0.width, $0.height, $0.fit) = (100, 100, fit) }
    #expect(result.image == size(imageWidth, imageHeight))
    #expect(result.canvas == size(width, height))
  }

  @Test(arguments: [
    (Fit.inside, 40, 20, 40, 20), (.outside, 40, 20, 40, 20), (.cover, 40, 20, 40, 20),
    (.contain, 40, 20, 100, 100), (.fill, 40, 20, 40, 20),
  ])
  func `of a source smaller than the box no axis grows`(
    fit: Fit, imageWidth: Int, imageHeight: Int, width: Int, height: Int
  ) {
    let result = geometry(40, 20) { ($0.width, $0.height, $0.fit) = (100, 100, fit) }
    #expect(result.image == size(imageWidth, imageHeight))
    #expect(result.canvas == size(width, height))
  }

  @Test func `cover cuts the axis the box cannot hold and leaves the other`() {
    let result = geometry(400, 20) { ($0.width, $0.height, $0.fit) = (100, 100, .cover) }
    #expect(result.image == size(400, 20) && result.canvas == size(100, 20))
  }

  @Test(arguments: Fit.allCases)
  func `one side of the box is enough`(fit: Fit) {
    let byWidth = geometry(400, 200) { ($0.width, $0.fit) = (100, fit) }.canvas
    let byHeight = geometry(400, 200) { ($0.height, $0.fit) = (100, fit) }.canvas
    #expect(byWidth == (fit == .fill ? size(100, 200) : size(100, 50)))
    #expect(byHeight == (fit == .fill ? size(400, 100) : size(200, 100)))
  }

  @Test(arguments: [
    (Position.center, -50, 0), (.top, -50, 0), (.rightTop, -100, 0), (.right, -100, 0),
    (.rightBottom, -100, 0), (.bottom, -50, 0), (.leftBottom, 0, 0), (.left, 0, 0),
    (.leftTop, 0, 0), (.entropy, -50, 0), (.attention, -50, 0),
  ])
  func `the position says what cover cuts off`(position: Position, x: Int, y: Int) {
    let offset = geometry(400, 200) {
      ($0.width, $0.height, $0.fit, $0.position) = (100, 100, .cover, position)
    }.offset
    #expect(offset.x == x && offset.y == y)
  }

  @Test(arguments: [
    (Position.center, 0, 25), (.top, 0, 0), (.bottom, 0, 50), (.leftBottom, 0, 50),
    (.attention, 0, 25),
  ])
  func `the position says where contain puts the image`(position: Position, x: Int, y: Int) {
    let offset = geometry(400, 200) {
      ($0.width, $0.height, $0.fit, $0.position) = (100, 100, .contain, position)
    }.offset
    #expect(offset.x == x && offset.y == y)
  }

  @Test func `a vector is rendered at any size, up to the limit`() {
    #expect(geometry(10, 10, isVector: true) { $0.width = 500 }.canvas == size(500, 500))
    #expect(
      geometry(10, 10, isVector: true) { ($0.width, $0.limitBytes) = (500, 40_000) }.canvas
        == size(100, 100))
  }

  @Test
  func `an animation's limit counts for each frame, and for all together what may be decoded`() {
    #expect(geometry(1000, 1000, frames: 100, maximumPixels: 100_000_000).scaledDownFrom == nil)
    let result = geometry(10, 10, frames: 100, maximumPixels: 1_000_000) {
      ($0.width, $0.enlarge) = (1000, true)
    }
    #expect(result.canvas == size(100, 100) && result.scaledDownFrom == size(1000, 1000))
  }

  @Test(arguments: Fit.allCases, [1, 10, 100])
  func `no demand makes more pixels than a result may have, nor many more on the way`(
    fit: Fit, frames: Int
  ) {
    for (width, height) in [(10, 10), (1, 5_000), (6_000, 4_000)] {
      let result = geometry(width, height, frames: frames, maximumResultPixels: 1_000_000) {
        ($0.width, $0.height, $0.enlarge, $0.fit) = (65_535, 60_000, true, fit)
        $0.limitBytes = .max
      }
      #expect(result.canvas.pixels <= 1_000_000)
      #expect(result.canvas.pixels * frames <= max(1_000_000, width * height * frames))
      #expect(result.image.pixels <= max(1_000_000, width * height))
    }
  }

  @Test(arguments: Fit.allCases)
  func `the widest demands end within the limits`(fit: Fit) {
    let result = geometry(1, 10_000_000) {
      ($0.width, $0.height, $0.scale, $0.enlarge, $0.fit) = (65_535, 65_535, 10, true, fit)
      $0.limitBytes = .max
    }
    #expect(result.canvas.pixels <= 150_000_000 && result.image.pixels <= 150_000_000)
    #expect(result.canvas.width >= 1 && result.canvas.height >= 1)
  }

  @Test func `no side becomes longer than an image can be`() {
    // given: room for the pixels, but not for one of the sides
    let result = geometry(1, 10_000_000, isVector: true) { $0.width = 100 }
    let cut = geometry(1_000_000, 1) {
      ($0.width, $0.height, $0.fit, $0.enlarge) = (50, 50, .cover, true)
    }
    // then
    #expect(result.canvas == size(1, 1_000_000))
    #expect(cut.image.width <= 10_000_000 && cut.scaledDownFrom == size(50, 50))
  }

  @Test(arguments: Fit.allCases)
  func `whatever is asked for, the parts fit together`(fit: Fit) {
    var generator = SeededGenerator(seed: 1)
    for _ in 0..<2_000 {
      // given
      let (width, height) = (
        Int.random(in: 1...4_000, using: &generator), Int.random(in: 1...4_000, using: &generator)
      )
      let box = (
        Int.random(in: 1...3_000, using: &generator), Int.random(in: 1...3_000, using: &generator)
      )
      let limit = Int.random(in: 4...60_000_000, using: &generator)
      // when
      let result = geometry(width, height) {
        ($0.width, $0.height, $0.fit, $0.limitBytes) = (box.0, box.1, fit, limit)
      }
      // then
      #expect(result.canvas.pixels * 4 <= limit || result.canvas == size(1, 1))
      #expect(result.image.width <= width && result.image.height <= height)
      if fit == .inside { #expect(result.canvas.width <= box.0 && result.canvas.height <= box.1) }
      if fit != .contain { #expect(!result.isPadded) }
      if fit != .cover { #expect(!result.isCut) }
    }
  }
}
