// IconTests: which image of an icon is selected, and how its mask is applied.

import ImagingWire
import Model
import TestSupport
import Testing

@testable import ImagingPipeline

@Suite(.onOwnThreads) struct IconTests {
  /// Returns a bitmap of one colour, with its left half masked out.
  private func bitmap(
    _ side: Int, _ color: [UInt8], depth: Int = 32, alpha: UInt32 = 0
  ) -> CodedBitmap {
    var bitmap = CodedBitmap(size: PixelSize(width: side, height: side), depth: depth)
    let pixel = UInt32(color[0]) << 16 | UInt32(color[1]) << 8 | UInt32(color[2])
    if depth <= 8 { bitmap.palette = [[0, 0, 0], color] }
    let value = depth <= 8 ? 1 : alpha << 24 | pixel
    bitmap.pixels = [UInt32](repeating: value, count: side * side)
    bitmap.clear = (0..<side * side).map { $0 % side < side / 2 }
    return bitmap
  }

  private func decoded(_ images: [[UInt8]]) throws -> Pixels {
    try Made(CodedBitmap.icon(of: images)).pixels()
  }

  @Test func `the largest image counts, wherever it stands`() throws {
    let (small, large) = (bitmap(16, [255, 0, 0]).icon, bitmap(48, [0, 0, 255]).icon)
    for images in [[small, large], [large, small]] {
      let pixels = try decoded(images)
      #expect(pixels.size == PixelSize(width: 48, height: 48))
      #expect(pixels[40, 20] == [0, 0, 255, 255])
    }
  }

  @Test func `a profile in an icon counts for nothing`() throws {
    // given
    let wide = try TestImages.encode(
      Pixels(width: 4, height: 4, color: [200, 100, 50]), ".png[profile=p3]")
    let profile = try wide.withUnsafeBytes {
      try Loader.open($0, as: .png, pages: .first, failOn: .none).foreignProfile
    }
    var image = bitmap(20, [200, 100, 50], depth: 24)
    (image.headerLength, image.profile) = (124, profile)
    var bytes = image.icon
    bytes.replaceSubrange(112..<116, with: CodedBitmap.little(bytes.count, 4))
    // when, then
    #expect(!profile.isEmpty)
    #expect(try decoded([bytes + profile])[17, 10] == [200, 100, 50, 255])
  }

  @Test func `of images as large the one with the most colours counts`() throws {
    let (few, many) = (bitmap(32, [255, 0, 0], depth: 4).icon, bitmap(32, [0, 255, 0]).icon)
    for images in [[few, many], [many, few]] {
      #expect(try decoded(images)[30, 2] == [0, 255, 0, 255])
    }
  }

  @Test(arguments: [1, 4, 8, 24, 32])
  func `what the mask says is transparent`(depth: Int) throws {
    let pixels = try decoded([bitmap(20, [200, 100, 50], depth: depth).icon])
    #expect(pixels[2, 10][3] == 0 && pixels[17, 10] == [200, 100, 50, 255])
  }

  @Test func `an alpha of the pixels goes before the mask, which may be missing then`() throws {
    var alpha = bitmap(20, [200, 100, 50], alpha: 128)
    #expect(try decoded([alpha.icon])[2, 10] == [200, 100, 50, 128])
    alpha.clear = []
    #expect(try decoded([alpha.icon])[2, 10] == [200, 100, 50, 128])
    // Without any alpha the image is opaque.
    var bare = bitmap(20, [200, 100, 50])
    bare.clear = []
    #expect(try decoded([bare.icon])[2, 10] == [200, 100, 50, 255])
    // With fewer bits only the mask defines transparency.
    var short = bitmap(20, [200, 100, 50], depth: 24)
    short.clear = []
    #expect(isUndecodable(CodedBitmap.icon(of: [short.icon])))
  }

  @Test func `a PNG in an icon is an image of it`() throws {
    // given: a PNG larger than a directory can state
    let png = try TestImages.png(width: 300, height: 300, alpha: true)
    let icon = CodedBitmap.icon(of: [bitmap(256, [255, 0, 0]).icon, png])
    // when
    let made = try Made(icon)
    // then
    #expect(made.format == .png && made.size == PixelSize(width: 300, height: 300))
    #expect(try made.pixels().psnr(to: .scene(width: 300, height: 300, alpha: true)) > 40)
    // and at any requested size
    #expect(try Made(icon) { $0.width = 30 }.size == PixelSize(width: 30, height: 30))
  }

  @Test func `an image that is none is passed over`() throws {
    let good = bitmap(16, [0, 0, 255]).icon
    let bad = Array(bitmap(64, [255, 0, 0]).icon.prefix(900))
    #expect(try decoded([bad, good, [1, 2, 3]])[12, 8] == [0, 0, 255, 255])
    #expect(isUndecodable(CodedBitmap.icon(of: [bad])))
    // a directory that exceeds the file
    var icon = CodedBitmap.icon(of: [good])
    icon[4] = 200
    icon.replaceSubrange(18..<22, with: CodedBitmap.little(6 + 16 * 200, 4))
    #expect(isUndecodable(icon))
  }

  @Test func `a PNG that is too large is refused by its header`() throws {
    var png = try TestImages.png(width: 8, height: 8)
    png.replaceSubrange(16..<24, with: [0, 0, 0xc3, 0x50, 0, 0, 0xc3, 0x50])
    png.replaceSubrange(29..<33, with: CodedPNG.crc32(of: png[12..<29]))
    #expect(
      Made.error(CodedBitmap.icon(of: [png]))
        == .tooManyPixels(pixels: 2_500_000_000, limit: 150_000_000))
  }

  /// BMPs and icons of every coding.
  private var victims: [[UInt8]] {
    var runs = CodedBitmap(size: PixelSize(width: 24, height: 9), depth: 4)
    runs.palette = (0..<16).map { [UInt8($0), 7, 9] }
    (runs.compression, runs.runs) = (
      2,
      [20, 0x12, 0, 0, 0, 5, 1, 2, 3, 0, 0, 2, 3, 2, 9, 0x34, 0, 0, 24, 1, 0, 0, 3, 3, 0, 1]
    )
    var masked = CodedBitmap(size: PixelSize(width: 24, height: 9), depth: 16)
    (masked.compression, masked.masks, masked.headerLength) = (3, [0xf800, 0x7e0, 0x1f], 124)
    masked.pixels = (0..<24 * 9).map { UInt32($0 * 251 & 0xffff) }
    return [
      runs.file, masked.file, bitmap(24, [1, 2, 3], depth: 8).file,
      bitmap(24, [1, 2, 3], depth: 1).file, bitmap(24, [9, 8, 7], depth: 24).file,
      CodedBitmap.icon(of: [bitmap(16, [1, 2, 3]).icon, bitmap(9, [1, 2, 3], depth: 4).icon]),
    ]
  }

  @Test(arguments: 0..<6)
  func `damage by chance ends in an error of the contract or in an image`(victim: Int) {
    // given: damage with small and large numbers, in headers more often than in pixels
    let whole = victims[victim]
    var generator = SeededGenerator(seed: UInt64(victim))
    var limits = ImagingLimits()
    limits.maximumPixels = 100_000
    for _ in 0..<400 {
      var bytes = whole
      for _ in 0..<Int.random(in: 1...4, using: &generator) {
        let end = Bool.random(using: &generator) ? bytes.count : min(bytes.count, 80)
        let values: [UInt8] = [0, 1, 0x7f, 0x80, 0xff, .random(in: 0...255, using: &generator)]
        let value = values[.random(in: 0..<values.count, using: &generator)]
        bytes[.random(in: 2..<end, using: &generator)] = value
      }
      if Bool.random(using: &generator) {
        bytes.removeLast(.random(in: 0..<bytes.count / 2, using: &generator))
      }
      // when, then
      switch Made.error(bytes, limits: limits, { $0.width = 8 }) {
      case nil, .undecodable, .unsupportedFormat, .tooManyPixels: break
      case let error?: Issue.record("\(error)")
      }
    }
  }

  private func isUndecodable(_ bytes: [UInt8]) -> Bool {
    if case .undecodable = Made.error(bytes) { true } else { false }
  }
}
