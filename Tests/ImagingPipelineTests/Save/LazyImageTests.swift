// LazyImageTests: encoders that read pixels, with an image that is computed while it is read.

import CVips
import TestSupport
import Testing

@testable import ImagingPipeline

@Suite struct LazyImageTests {
  @Test func `an image that is not in memory has the same bytes`() throws {
    func encoded(_ image: borrowing Image) throws -> [UInt8] {
      try AVIFEncoder(quality: 63, threads: 1).encode(image).withUnsafeBytes { Array($0) }
    }
    let image = try Pixels.textured(width: 150, height: 90).image()
    let lazy = try image.made("copy") { pictor_vips_copy($0, $1) }
    #expect(image.pixels != nil && lazy.pixels == nil)
    let isSame = try encoded(image) == encoded(lazy)
    #expect(isSame)
  }
}
