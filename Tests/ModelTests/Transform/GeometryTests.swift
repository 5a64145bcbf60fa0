// GeometryTests: sizes, positions and densities, computed without pixels.

import Core
import TestSupport
import Testing

/// Returns the geometry of a source of this size with the usual limits.
func geometry(
  width: Int, height: Int, density: Int = 1, frames: Int = 1, isVector: Bool = false,
  maximumPixels: Int = 150_000_000, maximumResultPixels: Int = 25_000_000,
  w: Int? = nil, h: Int? = nil, scale: Double? = nil, fit: Fit = .inside,
  position: Position = .center, enlarge: Bool = false,
  limitBytes: Int = Sizing.defaultLimitBytes, change: (inout Transform) -> Void = { _ in }
) -> Geometry {
  var transform = Transform()
  transform.width = w
  transform.height = h
  transform.scale = scale
  transform.fit = fit
  transform.position = position
  transform.enlarge = enlarge
  transform.limitBytes = limitBytes
  change(&transform)
  return Geometry(
    of: PixelSize(width: width, height: height), isVector: isVector, sizing: transform.sizing,
    density: density, frames: frames,
    limits: Geometry.Limits(sourcePixels: maximumPixels, resultPixels: maximumResultPixels))
}

/// Returns a size in pixels.
func size(width: Int, height: Int) -> PixelSize {
  PixelSize(width: width, height: height)
}

@Suite(.onOwnThreads) struct GeometryTests {
  @Test func `an empty transform changes nothing`() {
    let result = geometry(width: 640, height: 480)
    #expect(
      result.canvas == size(width: 640, height: 480)
        && result.image == size(width: 640, height: 480))
    #expect(result.density == 1 && result.scaledDownFrom == nil)
    #expect(geometry(width: 640, height: 480, density: 2).density == 2)
  }

  @Test func `scale is relative to the source's points`() {
    #expect(geometry(width: 640, height: 480, scale: 0.5).canvas == size(width: 320, height: 240))
    #expect(
      geometry(width: 640, height: 480, density: 2, scale: 1).canvas
        == size(width: 320, height: 240))
    #expect(
      geometry(width: 640, height: 480, density: 3, scale: 1).canvas
        == size(width: 213, height: 160))
    #expect(
      geometry(width: 640, height: 480, density: 2, scale: 2).canvas
        == size(width: 640, height: 480))
    #expect(geometry(width: 640, height: 480, density: 2, scale: 1).density == 1)
  }

  /// As measured on imgproxy 4 with `max_result_dimension`.
  @Test func `a longest side shrinks the image with what is around it`() {
    let kept = geometry(width: 200, height: 100, w: 300) { $0.sizing.limitSide = 200 }
    #expect(kept == geometry(width: 200, height: 100, w: 300))
    let inside = geometry(width: 200, height: 100) { $0.sizing.limitSide = 50 }
    #expect(inside.canvas == size(width: 50, height: 25) && inside.density == 0.25)
    let cut = geometry(width: 200, height: 100, w: 100, h: 100, fit: .cover) {
      $0.sizing.limitSide = 50
    }
    #expect(cut.canvas == size(width: 50, height: 50) && cut.image == size(width: 100, height: 50))
    let padded = geometry(width: 200, height: 100, w: 200, h: 200, fit: .contain) {
      $0.sizing.limitSide = 50
      $0.sizing.padding = Edges([10]) ?? Edges()
    }
    #expect(padded.canvas.longestSide <= 50 && padded.padding.left == 2)
    #expect(padded.frame == size(width: 45, height: 45) && padded.image.width == 45)
  }

  @Test func `sides can be per cent of the image's`() {
    let half = geometry(width: 640, height: 480, h: 100) { $0.sizing.widthShare = 50 }
    #expect(half.image == geometry(width: 640, height: 480, w: 320, h: 100).image)
    let dense = geometry(width: 641, height: 480, scale: 2, enlarge: true) {
      $0.sizing.widthShare = 50
    }
    #expect(dense.canvas.width == 642)
    #expect(
      geometry(width: 3, height: 3) { $0.sizing.heightShare = 0.1 }.canvas.height == 1)
  }

  @Test func `sides that may swap follow the image`() {
    for (width, height, image) in [(30, 60, (100, 50)), (60, 30, (100, 50)), (60, 30, (50, 100))] {
      let made = geometry(width: image.0, height: image.1, w: width, h: height, fit: .cover) {
        $0.sizing.adapts = true
      }
      #expect((made.canvas.width > made.canvas.height) == (image.0 > image.1))
    }
    #expect(
      geometry(width: 100, height: 50, w: 30) { $0.sizing.adapts = true }
        == geometry(width: 100, height: 50, w: 30))
  }

  @Test func `each side is rounded half away from zero and at least 1`() {
    #expect(geometry(width: 5, height: 3, scale: 0.5).canvas == size(width: 3, height: 2))
    #expect(geometry(width: 1, height: 1000, scale: 0.01).canvas == size(width: 1, height: 10))
    #expect(geometry(width: 1000, height: 1, w: 10).canvas == size(width: 10, height: 1))
  }

  @Test func `boxes have the results of SDWebImage`() {
    #expect(
      geometry(width: 5250, height: 3450, w: 400, h: 300).canvas == size(width: 400, height: 263))
    #expect(
      geometry(width: 5250, height: 3450, w: 4000, h: 4000).canvas
        == size(width: 4000, height: 2629))
  }

  @Test func `a result above the limit shrinks by the square root of the ratio`() {
    // given, when
    let result = geometry(width: 5250, height: 3450)
    let tiny = geometry(width: 5250, height: 3450, limitBytes: 1)
    // then
    #expect(
      result.canvas == size(width: 4892, height: 3214)
        && result.scaledDownFrom == size(width: 5250, height: 3450))
    #expect(result.density == 0.9319)
    #expect(
      tiny.canvas == size(width: 1, height: 1)
        && tiny.scaledDownFrom == size(width: 5250, height: 3450))
    #expect(geometry(width: 100, height: 100, limitBytes: 40_000).scaledDownFrom == nil)
    #expect(
      geometry(width: 100, height: 100, limitBytes: 39_999).canvas
        == size(width: 99, height: 99))
  }

  @Test func `an image grows only with enlarge, and its density grows with it`() {
    // given, when
    let kept = geometry(width: 100, height: 50, w: 100, scale: 2)
    let grown = geometry(width: 100, height: 50, w: 100, scale: 2, enlarge: true)
    // then
    #expect(kept.canvas == size(width: 100, height: 50) && kept.density == 1)
    #expect(grown.canvas == size(width: 200, height: 100) && grown.density == 2)
    #expect(geometry(width: 100, height: 50, scale: 3).density == 1)
    #expect(
      geometry(width: 100, height: 50, scale: 3, enlarge: true).canvas
        == size(width: 300, height: 150))
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
  func `the density fits the displayed size and is never above what the pixels provide`(
    side: Int, sourceDensity: Int, width: Int?, scale: Double?, pixels: Int, density: Double
  ) {
    for fit in [Fit.inside, .outside, .cover, .fill] {
      let result = geometry(
        width: side, height: side, density: sourceDensity, w: width, h: width, scale: scale,
        fit: fit)
      #expect(result.canvas == size(width: pixels, height: pixels) && result.density == density)
    }
  }

  @Test func `a padded result has the box's size in points`() {
    for scale in [1, 2] as [Double] {
      let result = geometry(width: 100, height: 50, w: 200, h: 200, scale: scale, fit: .contain)
      #expect(result.canvas.width == Int(200 * scale) && result.density == scale)
    }
  }

  @Test func `the density is at least 0.001`() {
    #expect(geometry(width: 100, height: 100, scale: 0.000_001).density == 0.001)
    #expect(geometry(width: 12_000, height: 9_000, limitBytes: 1).density == 0.001)
    #expect(geometry(width: 1, height: 1, w: 65_535).density == 1)
  }

  @Test func `scale multiplies the box`() {
    let result = geometry(width: 1000, height: 500, w: 33, h: 33, scale: 1.5)
    #expect(result.canvas == size(width: 50, height: 25) && result.density == 1.5)
    let ofDensity2 = geometry(width: 1000, height: 500, density: 2, w: 100)
    #expect(ofDensity2.canvas == size(width: 100, height: 50) && ofDensity2.density == 1)
  }

  /// The source has twice the width of its height. Then the sizes of the image and of the canvas.
  @Test(arguments: [
    (400, Fit.inside, 100, 50, 100, 50), (400, .outside, 200, 100, 200, 100),
    (400, .cover, 200, 100, 100, 100), (400, .contain, 100, 50, 100, 100),
    (400, .fill, 100, 100, 100, 100),
    // A source smaller than the box does not grow on either axis.
    (40, .inside, 40, 20, 40, 20), (40, .outside, 40, 20, 40, 20), (40, .cover, 40, 20, 40, 20),
    (40, .contain, 40, 20, 100, 100), (40, .fill, 40, 20, 40, 20),
  ])
  func `each fit has the result of sharp`(
    side: Int, fit: Fit, imageWidth: Int, imageHeight: Int, width: Int, height: Int
  ) {
    let result = geometry(width: side, height: side / 2, w: 100, h: 100, fit: fit)
    #expect(result.image == size(width: imageWidth, height: imageHeight))
    #expect(result.canvas == size(width: width, height: height))
  }

  /// A source of 200 × 100 pixels, with imgproxy's sizes.
  @Test(arguments: [
    (50, 50, Fit.coverDown, false, 50, 50), (20, 50, .coverDown, false, 20, 50),
    (300, 125, .coverDown, false, 200, 83), (300, 125, .coverDown, true, 300, 125),
    (100, 300, .coverDown, false, 33, 100),
    (50, 20, .auto, false, 50, 20), (20, 50, .auto, false, 20, 10), (50, 50, .auto, false, 50, 50),
    (300, 125, .auto, false, 200, 100), (300, 125, .auto, true, 300, 125),
  ])
  func `cover-down keeps the shape of the box, and auto covers a box of the same orientation`(
    w: Int, h: Int, fit: Fit, enlarge: Bool, width: Int, height: Int
  ) {
    let result = geometry(width: 200, height: 100, w: w, h: h, fit: fit, enlarge: enlarge)
    #expect(result.canvas == size(width: width, height: height))
  }

  @Test func `the ratio gives the side that is missing, or the largest box`() {
    func canvas(_ w: Int?, _ h: Int?, _ ratio: Double, _ fit: Fit = .cover) -> PixelSize {
      geometry(width: 400, height: 300, w: w, h: h, fit: fit) {
        $0.sizing.aspectRatio = AspectRatio(ratio)
      }.canvas
    }
    #expect(canvas(160, nil, 16.0 / 9) == size(width: 160, height: 90))
    #expect(canvas(nil, 90, 16.0 / 9) == size(width: 160, height: 90))
    #expect(canvas(100, 100, 16.0 / 9) == size(width: 100, height: 100))
    #expect(canvas(160, nil, 1, .inside) == size(width: 160, height: 120))
    #expect(canvas(nil, nil, 2) == size(width: 400, height: 200))
    #expect(canvas(nil, nil, 0.5) == size(width: 150, height: 300))
    let dense = geometry(width: 400, height: 300, density: 2, scale: 1, fit: .cover) {
      $0.sizing.aspectRatio = AspectRatio(2)
    }
    #expect(dense.canvas == size(width: 200, height: 100) && dense.density == 1)
  }

  @Test func `the least sides are reached without enlarge, and what exceeds the box is cropped`() {
    func result(
      _ w: Int?, _ h: Int?, least: (Int?, Int?), fit: Fit = .inside, scale: Double? = nil
    ) -> Geometry {
      geometry(width: 300, height: 200, w: w, h: h, scale: scale, fit: fit) {
        ($0.sizing.minWidth, $0.sizing.minHeight) = least
      }
    }
    // imgproxy: mw:500/w:300
    #expect(result(300, nil, least: (500, nil)).canvas == size(width: 300, height: 333))
    #expect(result(nil, nil, least: (600, nil)).canvas == size(width: 600, height: 400))
    #expect(result(nil, nil, least: (100, 100)).canvas == size(width: 300, height: 200))
    #expect(result(150, nil, least: (nil, 200), fit: .outside).canvas.height == 200)
    let filled = result(100, 100, least: (200, nil), fit: .fill)
    #expect(filled.image == size(width: 200, height: 100))
    #expect(filled.canvas == size(width: 100, height: 100))
    #expect(
      result(100, 100, least: (200, nil), fit: .contain)
        == result(100, 100, least: (nil, nil), fit: .contain))
    #expect(
      result(nil, nil, least: (200, nil), scale: 2).canvas == size(width: 400, height: 267))
  }

  /// A source of 200 × 100 pixels, with imgproxy's sizes.
  @Test(
    arguments: [
      (50, 50, Fit.inside, Extension.box, 50, 50), (300, 125, .coverDown, .box, 300, 125),
      (nil, 200, .coverDown, .box, 200, 200), (300, nil, .inside, .box, 300, 100),
      (300, 125, .coverDown, .ratio, 200, 83), (300, 125, .inside, .ratio, 240, 100),
      (50, 50, .inside, .ratio, 50, 50), (1000, 2000, .inside, .ratio, 200, 400),
      (nil, 200, .inside, .ratio, 200, 100),
    ] as [(Int?, Int?, Fit, Extension, Int, Int)])
  func `a result is extended to its box, or to the shape of the box`(
    w: Int?, h: Int?, fit: Fit, extend: Extension, width: Int, height: Int
  ) {
    let result = geometry(width: 200, height: 100, w: w, h: h, fit: fit) {
      $0.sizing.extend = extend
    }
    #expect(result.canvas == size(width: width, height: height))
  }

  @Test func `padding is around the frame, in points`() {
    let result = geometry(width: 200, height: 100, w: 50, h: 50, scale: 2, fit: .cover) {
      $0.sizing.padding = Edges([1, 2, 3, 4]) ?? Edges()
    }
    #expect(result.image == size(width: 200, height: 100))
    #expect(result.frame == size(width: 100, height: 100))
    #expect(result.canvas == size(width: 112, height: 108))
    #expect(result.padding.all == [2, 4, 6, 8] && result.cutOrigin == (50, 0))
    #expect(result.isCut && result.isPadded && result.density == 2)
    let limited = geometry(width: 200, height: 100, limitBytes: 4 * 15_000) {
      $0.sizing.padding = Edges([50]) ?? Edges()
    }
    #expect(limited.scaledDownFrom == size(width: 300, height: 200))
    #expect(limited.canvas.pixels <= 15_000 && limited.padding.top == 25)
  }

  @Test func `an angle widens the canvas before padding, within all limits`() {
    let result = geometry(width: 200, height: 100, w: 100, scale: 2) {
      $0.sizing.angle = 30
      $0.sizing.padding = Edges([1, 2, 3, 4]) ?? Edges()
    }
    #expect(result.image == size(width: 200, height: 100) && result.frame == result.image)
    #expect(result.turned == size(width: 223, height: 187))
    #expect(result.canvas == size(width: 235, height: 195) && result.density == 2)
    let limited = geometry(width: 200, height: 100) {
      ($0.sizing.angle, $0.sizing.limitSide) = (45, 106)
    }
    #expect(limited.canvas == size(width: 106, height: 106))
    #expect(limited.frame == size(width: 100, height: 50) && limited.turned == limited.canvas)
  }

  @Test func `cover crops only the axis that exceeds the box`() {
    let result = geometry(width: 400, height: 20, w: 100, h: 100, fit: .cover)
    #expect(
      result.image == size(width: 400, height: 20) && result.canvas == size(width: 100, height: 20))
  }

  @Test(arguments: Fit.allCases)
  func `one side of the box suffices`(fit: Fit) {
    let byWidth = geometry(width: 400, height: 200, w: 100, fit: fit).canvas
    let byHeight = geometry(width: 400, height: 200, h: 100, fit: fit).canvas
    #expect(
      byWidth == (fit == .fill ? size(width: 100, height: 200) : size(width: 100, height: 50)))
    #expect(
      byHeight == (fit == .fill ? size(width: 400, height: 100) : size(width: 200, height: 100)))
  }

  @Test(arguments: [
    (Fit.cover, Position.center, 50, 0), (.cover, .top, 50, 0), (.cover, .rightTop, 100, 0),
    (.cover, .right, 100, 0), (.cover, .rightBottom, 100, 0), (.cover, .bottom, 50, 0),
    (.cover, .leftBottom, 0, 0), (.cover, .left, 0, 0), (.cover, .leftTop, 0, 0),
    (.cover, .entropy, 50, 0), (.cover, .attention, 50, 0), (.cover, .faces, 50, 0),
    (.contain, .center, 0, 25),
    (.contain, .top, 0, 0), (.contain, .bottom, 0, 50), (.contain, .leftBottom, 0, 50),
    (.contain, .attention, 0, 25),
  ])
  func `the position selects what cover crops, and places the image for contain`(
    fit: Fit, position: Position, x: Int, y: Int
  ) {
    let result = geometry(width: 400, height: 200, w: 100, h: 100, fit: fit, position: position)
    let origin = fit == .cover ? result.cutOrigin : result.placeOrigin
    #expect(origin == (x, y))
  }
}
