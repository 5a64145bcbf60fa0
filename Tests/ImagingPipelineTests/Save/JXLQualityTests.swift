// JXLQualityTests: the bytes and the pixels of JPEG XLs.

import Model
import TestSupport
import Testing

@Suite(.onOwnThreads) struct JXLQualityTests {
  private static let png = Result {
    try TestImages.encode(Pixels.textured(width: 200, height: 150), as: ".png")
  }

  /// libjxl refuses the distances that libvips computes for the lowest qualities.
  @Test func `a lower quality has no more bytes`() throws {
    let png = try Self.png.get()
    var last = 0
    for quality in [1, 2, 4, 5, 8, 15, 29, 30, 60, 100] {
      let file = try Made(png) {
        $0.format = .jxl
        $0.quality = quality
      }
      #expect(file.bytes.count >= last, "\(quality)")
      last = file.bytes.count
    }
  }

  @Test(arguments: [false, true])
  func `a JPEG XL looks like its PNG`(isDeep: Bool) throws {
    let scene = Pixels.textured(width: 200, height: 150)
    let source = try TestImages.encode(scene, as: ".png", sixteenBits: isDeep)
    let plain = try Pixels(decoding: Made(source) { $0.format = .png }.bytes)
    let made = try Pixels(
      decoding: Made(source) {
        $0.format = .jxl
        $0.quality = 95
      }.bytes)
    #expect(made.psnr(to: plain) > 35)
  }
}
