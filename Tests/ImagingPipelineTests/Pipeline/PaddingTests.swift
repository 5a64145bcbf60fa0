// PaddingTests: what is around the image of a result.

import Core
import TestSupport
import Testing

@Suite(.onOwnThreads) struct PaddingTests {
  private static let scene = Pixels.textured(width: 80, height: 40)
  private static let grey = Color(red: 10, green: 20, blue: 30)

  /// Returns the pixels of a result with a grey background.
  private func made(
    _ width: Int?, _ height: Int?, _ fit: Fit, change: (inout Transform) -> Void
  ) throws -> Pixels {
    let source = try TestImages.encode(Self.scene, as: ".png")
    return try Made(source, width: width, height: height, fit: fit, format: .png) {
      $0.background = Self.grey
      change(&$0)
    }.pixels()
  }

  /// Returns an image on a canvas of the background.
  private func placed(_ image: Pixels, x: Int, y: Int, width: Int, height: Int) -> Pixels {
    Pixels(width: width, height: height) { column, row in
      let isInside =
        (x..<x + image.size.width).contains(column) && (y..<y + image.size.height).contains(row)
      return isInside ? image[column - x, row - y] : [10, 20, 30]
    }
  }

  @Test func `padding surrounds what cover leaves`() throws {
    let cut = try made(40, 40, .cover) { $0.position = .left }
    let padded = try made(40, 40, .cover) {
      $0.position = .left
      $0.sizing.padding = Edges([1, 2, 3, 4]) ?? Edges()
    }
    #expect(padded.values == placed(cut, x: 4, y: 1, width: 46, height: 44).values)
  }

  @Test func `what is extended lies where position says`() throws {
    for (position, x, y) in [
      (Position.center, 20, 10), (.leftTop, 0, 0), (.rightBottom, 40, 20),
    ] {
      let extended = try made(120, 60, .inside) {
        $0.sizing.extend = .box
        $0.position = position
      }
      #expect(extended.values == placed(Self.scene, x: x, y: y, width: 120, height: 60).values)
    }
    let shaped = try made(30, 30, .inside) { $0.sizing.extend = .ratio }
    #expect(shaped.size == PixelSize(width: 30, height: 30))
    #expect(shaped[2, 2] == [10, 20, 30] && shaped[2, 15] != [10, 20, 30])
  }

  @Test(arguments: [
    (Position.leftTop, Length.pixels(3), Length.pixels(2), 3, 2),
    (.rightBottom, .pixels(3), .share(0.1), 37, 14), (.center, .pixels(-4), .share(-0.05), 16, 7),
    (.right, .pixels(99), .pixels(99), 0, 20), (.top, .pixels(-99), .pixels(-99), 0, 0),
  ])
  func `an offset goes inward from its place, and ends at the edges`(
    position: Position, offsetX: Length, offsetY: Length, x: Int, y: Int
  ) throws {
    // given: 40 and 20 pixels of room, once around the image and once in it
    let padded = try made(120, 60, .contain) {
      ($0.position, $0.sizing.offset) = (position, Offset(x: offsetX, y: offsetY))
    }
    #expect(padded.values == placed(Self.scene, x: x, y: y, width: 120, height: 60).values)
    let large = Pixels.textured(width: 120, height: 60)
    let cut = try Made(
      try TestImages.encode(large, as: ".png"), width: 80, height: 40, fit: .cover, format: .png
    ) {
      ($0.position, $0.sizing.offset) = (position, Offset(x: offsetX, y: offsetY))
      ($0.selection.crop, $0.sizing.width, $0.sizing.height) = (
        Crop(width: .pixels(80), height: .pixels(40), at: .named(position, $0.sizing.offset)),
        nil, nil
      )
    }
    #expect(try cut.pixels().values == large.cut(x: x, y: y, width: 80, height: 40).values)
    // Of 240 × 60, cover keeps 120 × 60.
    let wide = Pixels.textured(width: 240, height: 60)
    let kept = try Made(
      try TestImages.encode(wide, as: ".png"), width: 200, height: 60, fit: .cover, format: .png
    ) { ($0.position, $0.sizing.offset) = (position, Offset(x: offsetX, y: offsetY)) }
    let start = Offset.start(room: 40, anchor: position.anchor.x, by: offsetX, of: 240)
    #expect(try kept.pixels().values == wide.cut(x: start, y: 0, width: 200, height: 60).values)
  }

  @Test func `an offset in points follows the scale`() throws {
    let source = try TestImages.encode(Self.scene, as: ".png")
    let made = try Made(source, width: 60, height: 20, fit: .contain, format: .png) {
      $0.sizing.scale = 2
      $0.background = Self.grey
      ($0.position, $0.sizing.offset) = (.left, Offset(x: .pixels(5), y: .pixels(0)))
    }
    #expect(
      try made.pixels().values == placed(Self.scene, x: 10, y: 0, width: 120, height: 40).values)
  }

  @Test func `a focal point in pixels is the same in shares`() throws {
    for (x, y) in [(0.0, 0.0), (20, 30), (40, 10), (90, 40)] {
      let kept = [true, false].map { isInPixels in
        try? made(20, 20, .cover) {
          $0.focalPoint =
            isInPixels
            ? FocalPoint(x: x, y: y, isInPixels: true)
            : FocalPoint(x: min(x / 80, 1), y: min(y / 40, 1))
        }.values
      }
      #expect(kept[0] != nil && kept[0] == kept[1])
    }
  }

  /// As imgproxy's `fill-down` with `extend`.
  @Test func `what is cut to a shape stays cut where it is extended`() throws {
    let cut = try made(240, 40, .coverDown) { _ in }
    let extended = try made(240, 40, .coverDown) { $0.sizing.extend = .box }
    #expect(cut.size == PixelSize(width: 80, height: 13))
    #expect(extended.values == placed(cut, x: 80, y: 13, width: 240, height: 40).values)
  }

  @Test func `a clear background gives alpha`() throws {
    let source = try TestImages.encode(Self.scene, as: ".png")
    let made = try Made(source) {
      $0.sizing.padding = Edges([5]) ?? Edges()
      $0.background = Color(red: 0, green: 0, blue: 0, alpha: 0)
    }
    #expect(made.format == .png)
    let pixels = try made.pixels()
    #expect(pixels[0, 0][3] == 0 && pixels[20, 20][3] == 255)
  }
}
