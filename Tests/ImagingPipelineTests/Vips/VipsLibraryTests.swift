// VipsLibraryTests: starting libvips allows the loaders in use and no others.

import CVips
import Core
import Glibc
import TestSupport
import Testing

@testable import ImagingPipeline

@Suite(.onOwnThreads) struct VipsLibraryTests {
  @Test func `the loaders in use are never blocked, not even while the others are`() async throws {
    // given
    TestImages.start()
    try VipsLibrary.start()
    let jpeg = try TestImages.jpeg(width: 16, height: 12)
    let isOver = Lock(false)
    // when: one thread blocks the other loaders again and again, another opens images
    async let blocking: Void = {
      for _ in 0..<300 { VipsLibrary.blockOtherLoaders() }
      isOver.withLock { $0 = true }
    }()
    var refused = 0
    repeat {
      if TestImages.size(of: jpeg) == nil { refused += 1 }
    } while !isOver.withLock { $0 }
    await blocking
    // then
    #expect(refused == 0)
  }

  /// In a process of its own: libvips has one text of errors per process, and other tests clear it.
  @Test func `a loader that is not in use is blocked`() async {
    await #expect(processExitsWith: .success) {
      // The module of ImageMagick, which reads almost anything, is there unless tests disabled it.
      unsetenv("VIPSHOME")
      #expect(vips_init("tests") == 0)
      let image = Array("P2 2 1 255 0 255".utf8)
      #expect(vips_foreign_find_load_buffer(image, image.count) != nil)
      try VipsLibrary.start()
      #expect(throws: TestImages.Failure.self) { try Pixels(decoding: image) }
    }
  }

  @Test(arguments: [".heic[Q=50,effort=0]", ".avif[Q=50,effort=0]", ".jxl[Q=50,effort=1]"])
  func `tests make every format, whatever started libvips`(suffix: String) async {
    await #expect(processExitsWith: .success) { [suffix] in
      _ = try Pipeline()
      let image = try TestImages.encode(.scene(width: 16, height: 12), as: suffix)
      #expect(try Pixels(decoding: image).size == PixelSize(width: 16, height: 12))
    }
  }
}
