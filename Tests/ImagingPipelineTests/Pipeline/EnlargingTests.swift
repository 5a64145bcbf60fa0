// EnlargingTests: an enlarged image keeps its position.

import Model
import TestSupport
import Testing

@Suite(.onOwnThreads) struct EnlargingTests {
  @Test(arguments: [25, 40, 60, 137], [3, 4, 9])
  func `an enlarged image keeps its position`(width: Int, height: Int) throws {
    // given: a shade that rises by 12 with each pixel to the right
    for bands in [3, 4] {
      let source = try TestImages.encode(
        Pixels(width: 20, height: 4, bands: bands) { x, _ in
          [UInt8(x * 12), 80, 80] + (bands == 4 ? [255] : [])
        }, as: ".png")
      // when
      let made = try Made(source) {
        $0.width = width
        $0.height = height
        $0.fit = .fill
        $0.enlarge = true
        $0.format = .png
      }.pixels()
      // then: correct except at the edges, where no neighbours exist
      #expect(made.size == PixelSize(width: width, height: height))
      for x in width / 10..<width - width / 10 {
        let exact = 12 * ((Double(x) + 0.5) * 20 / Double(width) - 0.5)
        #expect(abs(Double(made[x, height / 2][0]) - exact) <= 1.1, "at \(x)")
      }
    }
  }
}
