// HostileTests: hostile files fail fast, with the right error.

import Core
import TestSupport
import Testing

@Suite(.onOwnThreads) struct HostileTests {
  static func source(_ kind: String) throws -> [UInt8] {
    switch kind {
    case "jpeg": try TestImages.jpeg(width: 300, height: 200)
    case "progressive": try TestImages.jpeg(width: 300, height: 200, progressive: true)
    case "png": try TestImages.png(width: 90, height: 60)
    case "gif":
      try TestImages.animation(
        (0..<3).map { _ in Pixels.scene(width: 60, height: 40) }, as: ".gif")
    case "webp": try TestImages.webp(width: 90, height: 60)
    case "animated webp": try TestImages.animatedWebP(width: 90, height: 60, frames: 4)
    case "tiff": try TestImages.tiff(width: 90, height: 60)
    case "avif": try TestImages.avif(width: 64, height: 64)
    case "heic": try TestImages.heic(width: 64, height: 64)
    case "jxl": try TestImages.jxl(.scene(width: 90, height: 60))
    case "jp2": try TestImages.encode(.scene(width: 90, height: 60), as: ".jp2")
    default: TestImages.svg(width: 90, height: 60)
    }
  }

  @Test(arguments: [
    "jpeg", "progressive", "png", "gif", "webp", "animated webp", "tiff", "avif", "heic", "jxl",
    "jp2", "svg",
  ])
  func `a truncated source is undecodable`(kind: String) throws {
    // given
    let whole = try Self.source(kind)
    for share in [0.2, 0.5, 0.8] {
      // when
      let error = Made.error(Array(whole.prefix(Int(Double(whole.count) * share)))) {
        $0.width = 40
      }
      // then
      #expect(error.isUndecodable, "\(kind) \(share): \(String(describing: error))")
    }
  }

  @Test(arguments: [
    "jpeg", "progressive", "png", "gif", "webp", "animated webp", "tiff", "avif", "heic", "jxl",
    "jp2", "svg",
  ])
  func `random damage of any format causes an error of the contract or an image`(kind: String)
    throws
  {
    // given: reproducible damage
    let whole = try Self.source(kind)
    var seed: UInt64 = 7
    func next(below bound: Int) -> Int {
      seed = seed &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return Int(seed >> 33) % bound
    }
    for _ in 0..<12 {
      var bytes = whole
      for _ in 0..<8 { bytes[12 + next(below: bytes.count - 12)] = UInt8(next(below: 256)) }
      // when
      let error = Made.error(bytes) {
        $0.width = 40
        $0.limitBytes = 1 << 20
      }
      // then
      switch error {
      case nil, .undecodable, .unsupportedFormat, .unsupportedKind, .tooManyPixels,
        .tooManyFrames:
        break
      default: Issue.record("\(String(describing: error))")
      }
    }
  }

  @Test(
    arguments: [
      [0xff, 0xd8, 0xff], [0xff, 0xd8, 0xff, 0xe0, 0, 16], Array("GIF89a".utf8),
      [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a], Array("RIFF\u{10}\0\0\0WEBPVP8 ".utf8),
      [0x49, 0x49, 42, 0, 8, 0, 0, 0], Array("\0\0\0\u{18}ftypavif\0\0\0\0mif1avif".utf8),
      Array("<svg>".utf8), Array("<svg><".utf8), [0xff, 0x0a], [0xff, 0x4f, 0xff, 0x51],
      Array("\0\0\0\u{c}JXL \r\n".utf8) + [0x87, 0x0a],
      Array("\0\0\0\u{c}jP  \r\n".utf8) + [0x87, 0x0a],
      Array("BM".utf8) + [UInt8](repeating: 0, count: 12) + [40] + [UInt8](repeating: 0, count: 11),
    ] as [[UInt8]])
  func `a header without an image is undecodable`(bytes: [UInt8]) {
    #expect(Made.isUndecodable(bytes))
  }

  @Test func `a GIF of 43 bytes and 400 megapixels is refused by its header`() {
    // given: one frame of 20000 by 20000, with little data
    let side: [UInt8] = [0x20, 0x4e]
    let bytes: [UInt8] =
      Array("GIF89a".utf8) + side + side + [0x80, 0, 0, 255, 255, 255, 0, 0, 0]
      + [0x21, 0xf9, 4, 1, 0, 0, 0, 0] + [0x2c, 0, 0, 0, 0] + side + side + [0]
      + [2, 2, 0x44, 1, 0, 0x3b]
    #expect(bytes.count == 43)
    // when, then
    #expect(Made.error(bytes) == .tooManyPixels(pixels: 400_000_000, limit: 150_000_000))
  }

  @Test func `a PNG of 50000 by 50000 is refused by its header`() throws {
    // given: a small PNG whose header states a larger size
    var bytes = try TestImages.png(width: 8, height: 8)
    let side: [UInt8] = [0, 0, 0xc3, 0x50]
    bytes.replaceSubrange(16..<24, with: side + side)
    bytes.replaceSubrange(29..<33, with: CodedPNG.crc32(of: bytes[12..<29]))
    // when, then
    #expect(Made.error(bytes) == .tooManyPixels(pixels: 2_500_000_000, limit: 150_000_000))
  }

  @Test func `a JPEG of 65000 by 65000 is refused by its header`() throws {
    // given: the sides in the frame header, after its marker, length and precision
    var bytes = try TestImages.jpeg(width: 16, height: 16)
    let frame = try #require(bytes.indices.first { bytes[$0...].starts(with: [0xff, 0xc0]) })
    bytes.replaceSubrange(frame + 5..<frame + 9, with: [0xfd, 0xe8, 0xfd, 0xe8])
    // when, then
    #expect(Made.error(bytes) == .tooManyPixels(pixels: 4_225_000_000, limit: 150_000_000))
  }

  @Test func `an SVG of any size is rendered within limitbytes`() throws {
    let made = try Made(TestImages.svg(width: 30_000, height: 30_000)) { $0.limitBytes = 40_000 }
    #expect(made.size == PixelSize(width: 100, height: 100))
    #expect(made.scaledDownFrom == PixelSize(width: 30_000, height: 30_000))
  }

  @Test func `a huge SVG is drawn with only the pixels of its result`() throws {
    // given: vectors of 10 and of 100 gigapixels
    for side in [100_000, 300_000] {
      let source = TestImages.svg(width: side, height: side)
      // when
      let small = try Made(source) { $0.width = 40 }
      let trimmed = try Made(source) {
        $0.width = 40
        $0.trim = 255
      }
      let placeholder = try Made(source) { $0.product = .placeholder(.lqip) }
      // then
      #expect(small.size == PixelSize(width: 40, height: 40))
      #expect(try small.pixels().meanDifference(to: trimmed.pixels()) < 2)
      #expect(placeholder.size == PixelSize(width: 16, height: 16))
    }
  }

  @Test func `a stretched SVG is drawn within the pixel limit`() throws {
    // given: maximum width and one pixel high, which at the width's scale is 4 gigapixels
    let limits = ImagingLimits { $0.maximumPixels = 1_000_000 }
    // when
    let made = try Made(TestImages.svg(width: 100, height: 100), limits: limits) {
      $0.width = 65_535
      $0.height = 1
      $0.fit = .fill
    }
    // then
    #expect(made.size == PixelSize(width: 65_535, height: 1))
  }

  @Test func `exponential entities of an SVG cause an error`() {
    let entities = (1...9).map {
      "<!ENTITY a\($0) \"\(String(repeating: "&a\($0 - 1);", count: 10))\">"
    }
    let text =
      "<!DOCTYPE svg [<!ENTITY a0 \"lol\">\(entities.joined())]>"
      + "<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'><text>&a9;</text></svg>"
    #expect(Made.isUndecodable(Array(text.utf8)))
  }
}
