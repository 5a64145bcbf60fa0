// ThreadsTests: jobs that use several threads.

import Core
import TestSupport
import Testing

@Suite(.onOwnThreads) struct ThreadsTests {
  private static let scene = Pixels.textured(width: 1_501, height: 1_003)

  private static func limits(_ threads: Int) -> ImagingLimits {
    ImagingLimits { $0.maximumThreads = threads }
  }

  @Test(arguments: [
    ".jpg[Q=95]", ".jpg[Q=95,interlace]", ".jpg[Q=95,subsample_mode=off]", ".webp[Q=90]",
    ".webp[lossless,effort=0]", ".avif[Q=80,effort=0]", ".heic[Q=80,effort=0]", "grid",
    ".png[compression=1]", ".tif",
  ])
  func `the result does not depend on the number of threads`(kind: String) throws {
    let source =
      try kind == "grid"
      ? HEIFGrid { $0.tile = PixelSize(width: 512, height: 512) }.file(of: Self.scene)
      : TestImages.encode(Self.scene, as: kind)
    let changes: [(inout Transform) -> Void] = [
      { $0.width = 160 }, { $0.width = 500 }, { $0.width = 1_400 },
      {
        $0.width = 301
        $0.height = 301
        $0.fit = .cover
      },
      {
        $0.crop = PixelArea(x: 3, y: 5, size: PixelSize(width: 1_209, height: 803))
        $0.width = 400
      },
      {
        $0.rotation = .quarter
        $0.width = 255
      },
    ]
    for (index, change) in changes.enumerated() {
      let one = try Made(source, limits: Self.limits(1), change: change)
      for threads in [2, 3, 4] {
        let several = try Made(source, limits: Self.limits(threads), change: change)
        #expect(several.bytes == one.bytes, "\(index), \(threads) threads")
      }
    }
  }

  @Test(arguments: [2, 4])
  func `damage is found with several threads`(threads: Int) throws {
    let whole = try TestImages.encode(Self.scene, as: ".jpg[Q=95]")
    for place in [0.2, 0.5, 0.9] {
      let cut = Array(whole.prefix(Int(Double(whole.count) * place)))
      var torn = whole
      // A marker that no code can be (T.81, B.1.1.3)
      torn.replaceSubrange(cut.count..<cut.count + 2, with: [0xff, 0xd9])
      for source in [cut, torn] {
        let errors = [1, threads].map {
          Made.error(source, limits: Self.limits($0)) { $0.width = 160 }
        }
        #expect(errors[0] != nil && errors[0]?.code == errors[1]?.code)
      }
    }
  }
}
