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
