// IconTests: which image of an icon is selected, and how its mask is applied.

import Core
import TestSupport
import Testing

@testable import ImagingPipeline

@Suite(.onOwnThreads) struct IconTests {
  /// Returns a bitmap of one colour, with its left half masked out.
  private func bitmap(
    _ side: Int, color: [UInt8], depth: Int = 32, alpha: UInt32 = 0
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

  @Test func `the largest image of an icon is used, regardless of its position`() throws {
    let small = bitmap(16, color: [255, 0, 0]).icon
    let large = bitmap(48, color: [0, 0, 255]).icon
    for images in [[small, large], [large, small]] {
      let pixels = try decoded(images)
      #expect(pixels.size == PixelSize(width: 48, height: 48))
      #expect(pixels[40, 20] == [0, 0, 255, 255])
    }
  }

  @Test func `a cursor is read as an icon`() throws {
    // Its entries have the place of the pointer instead of planes and bits.
    var bytes = CodedBitmap.icon(of: [bitmap(32, color: [0, 0, 255]).icon])
    bytes[2] = 2
    bytes.replaceSubrange(10..<14, with: [7, 0, 9, 0])
    let pixels = try Made(bytes).pixels()
    #expect(pixels.size == PixelSize(width: 32, height: 32) && pixels[30, 20] == [0, 0, 255, 255])
  }

  @Test func `a profile in an icon is ignored`() throws {
    // given
    let profile = LittleCMS.profile(LittleCMS.displayP3, gamma: 2.2)
    var image = bitmap(20, color: [200, 100, 50], depth: 24)
    image.headerLength = 124
    image.profile = profile
    var bytes = image.icon
    bytes.replaceSubrange(112..<116, with: CodedBitmap.little(bytes.count, width: 4))
    // when, then
    #expect(try decoded([bytes + profile])[17, 10] == [200, 100, 50, 255])
  }

  @Test func `among equally large images of an icon, the one with the most colours is used`() throws
  {
    let few = bitmap(32, color: [255, 0, 0], depth: 4).icon
    let many = bitmap(32, color: [0, 255, 0]).icon
    for images in [[few, many], [many, few]] {
      #expect(try decoded(images)[30, 2] == [0, 255, 0, 255])
    }
  }

  @Test(arguments: [1, 4, 8, 24, 32])
  func `masked pixels are transparent`(depth: Int) throws {
    let pixels = try decoded([bitmap(20, color: [200, 100, 50], depth: depth).icon])
    #expect(pixels[2, 10][3] == 0 && pixels[17, 10] == [200, 100, 50, 255])
  }

  @Test func `pixel alpha takes precedence over the mask, which may be missing`() throws {
    var alpha = bitmap(20, color: [200, 100, 50], alpha: 128)
    #expect(try decoded([alpha.icon])[2, 10] == [200, 100, 50, 128])
    alpha.clear = []
    #expect(try decoded([alpha.icon])[2, 10] == [200, 100, 50, 128])
    // Without any alpha the image is opaque.
    var bare = bitmap(20, color: [200, 100, 50])
    bare.clear = []
    #expect(try decoded([bare.icon])[2, 10] == [200, 100, 50, 255])
    // With fewer bits only the mask defines transparency.
    var short = bitmap(20, color: [200, 100, 50], depth: 24)
    short.clear = []
    #expect(Made.isUndecodable(CodedBitmap.icon(of: [short.icon])))
  }

  @Test func `an icon may contain a PNG`() throws {
    // given: a PNG larger than a directory can state
    let png = try TestImages.png(width: 300, height: 300, alpha: true)
    let icon = CodedBitmap.icon(of: [bitmap(256, color: [255, 0, 0]).icon, png])
    // when
    let made = try Made(icon)
    // then
    #expect(made.format == .png && made.size == PixelSize(width: 300, height: 300))
    #expect(try made.pixels().psnr(to: .scene(width: 300, height: 300, alpha: true)) > 40)
    // and at any requested size
    #expect(try Made(icon) { $0.width = 30 }.size == PixelSize(width: 30, height: 30))
  }

  @Test func `a damaged image in an icon is skipped`() throws {
    let good = bitmap(16, color: [0, 0, 255]).icon
    let bad = Array(bitmap(64, color: [255, 0, 0]).icon.prefix(900))
    #expect(try decoded([bad, good, [1, 2, 3]])[12, 8] == [0, 0, 255, 255])
    #expect(Made.isUndecodable(CodedBitmap.icon(of: [bad])))
    // a directory that exceeds the file
    var icon = CodedBitmap.icon(of: [good])
    icon[4] = 200
    icon.replaceSubrange(18..<22, with: CodedBitmap.little(6 + 16 * 200, width: 4))
    #expect(Made.isUndecodable(icon))
  }

  @Test func `an oversized PNG in an icon is refused by its header`() throws {
    var png = try TestImages.png(width: 8, height: 8)
    png.replaceSubrange(16..<24, with: [0, 0, 0xc3, 0x50, 0, 0, 0xc3, 0x50])
    png.replaceSubrange(29..<33, with: CodedPNG.crc32(of: png[12..<29]))
    #expect(
      Made.error(CodedBitmap.icon(of: [png]))
        == .tooManyPixels(pixels: 2_500_000_000, limit: 150_000_000))
  }

  private func places(in icon: [UInt8]) throws -> [Range<Int>] {
    try icon.withUnsafeBytes { try IconDirectory(of: $0).images }
  }

  @Test func `an image that several entries share is read once`() throws {
    // given: 255 entries of one PNG, and an entry of another image
    let png = try TestImages.png(width: 30, height: 30)
    let small = bitmap(16, color: [255, 0, 0]).icon
    var icon = CodedBitmap.icon(of: [png, small] + (0..<254).map { _ in [] })
    let entry = Array(icon[6..<22])
    for index in 2..<256 { icon.replaceSubrange(6 + 16 * index..<22 + 16 * index, with: entry) }
    // when, then
    #expect(try places(in: icon).map(\.count) == [png.count, small.count])
    icon[4] = 255
    icon[5] = 0
    #expect(try decoded([png])[3, 3] == Made(icon).pixels()[3, 3])
  }

  @Test func `a directory has no more entries than the file has room for`() throws {
    let image = bitmap(16, color: [0, 0, 255]).icon
    var icon = CodedBitmap.icon(of: [image])
    icon.replaceSubrange(4..<6, with: [255, 255])
    #expect(try places(in: icon).count <= (icon.count - 6) / 16)
    // Only a whole entry counts.
    #expect(try places(in: Array(icon.prefix(6 + 15))) == [])
    #expect(throws: ImageError.self) { try self.places(in: Array(icon.prefix(5))) }
  }

  @Test func `images that overlap are read up to a multiple of the file`() throws {
    // given: 65,535 entries, each a byte shorter than the one before
    let count = 65_535
    let start = 6 + 16 * count
    var icon: [UInt8] = [0, 0, 1, 0, 255, 255]
    for index in 0..<count {
      icon += [16, 16, 0, 0, 1, 0, 32, 0] + CodedBitmap.little(count - index, width: 4)
      icon += CodedBitmap.little(start, width: 4)
    }
    icon += try TestImages.png(width: 8, height: 8)
    icon += [UInt8](repeating: 0, count: start + count - icon.count)
    // when
    let read = try places(in: icon).reduce(0) { $0 + $1.count }
    // then
    #expect(read <= IconDirectory.maximumReadings * icon.count)
    #expect(read > (IconDirectory.maximumReadings - 1) * icon.count)
  }

  /// BMPs and icons of every coding.
  private var victims: [[UInt8]] {
    var runs = CodedBitmap(size: PixelSize(width: 24, height: 9), depth: 4)
    runs.palette = (0..<16).map { [UInt8($0), 7, 9] }
    runs.compression = 2
    runs.runs = [
      20, 0x12, 0, 0, 0, 5, 1, 2, 3, 0, 0, 2, 3, 2, 9, 0x34, 0, 0, 24, 1, 0, 0, 3, 3, 0, 1,
    ]
    var masked = CodedBitmap(size: PixelSize(width: 24, height: 9), depth: 16)
    masked.compression = 3
    masked.masks = [0xf800, 0x7e0, 0x1f]
    masked.headerLength = 124
    masked.pixels = (0..<24 * 9).map { UInt32($0 * 251 & 0xffff) }
    return [
      runs.file, masked.file, bitmap(24, color: [1, 2, 3], depth: 8).file,
      bitmap(24, color: [1, 2, 3], depth: 1).file, bitmap(24, color: [9, 8, 7], depth: 24).file,
      CodedBitmap.icon(of: [
        bitmap(16, color: [1, 2, 3]).icon, bitmap(9, color: [1, 2, 3], depth: 4).icon,
      ]),
    ]
  }

  @Test(arguments: 0..<6)
  func `random damage causes an error of the contract or an image`(victim: Int) {
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
      switch Made.error(bytes, limits: limits, change: { $0.width = 8 }) {
      case nil, .undecodable, .unsupportedFormat, .tooManyPixels: break
      case let error?: Issue.record("\(error)")
      }
    }
  }
}
