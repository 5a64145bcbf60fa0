// FileSeeds: small files of the formats whose containers are walked through.

import Core
import TestSupport

enum FileSeeds {
  /// Files by libvips and by the test kit, a few hundred bytes each.
  static func all() throws -> [(format: ImageFormat, bytes: [UInt8])] { try made.get() }

  private static let made = Result<[(format: ImageFormat, bytes: [UInt8])], any Error> {
    TestImages.start()
    let scene = Pixels.scene(width: 12, height: 9)
    let grey = CodedPNG(
      size: PixelSize(width: 5, height: 4), colorType: 0, depth: 8,
      samples: [Int](repeating: 9, count: 20), before: [("gAMA", [0, 0, 0xb1, 0x8f])],
      after: [("tEXt", Array("a\0b".utf8))])
    return [
      (.jpeg, try TestImages.jpeg(width: 16, height: 12, bare: true)),
      (.jpeg, try TestImages.jpeg(width: 16, height: 12, progressive: true)),
      (.png, grey.bytes), (.png, try TestImages.png(width: 9, height: 7)),
      (.gif, try TestImages.gif(width: 6, height: 5, frames: 2)),
      (.webp, try TestImages.bareWebP(width: 12, height: 9)),
      (.webp, try TestImages.bareWebP(width: 12, height: 9, frames: 2)),
      (.webp, try TestImages.described(width: 12, height: 9, as: ".webp")),
      (.tiff, try TestImages.tiff(width: 6, height: 5)),
      (.jp2, try TestImages.encode(scene, as: ".jp2")),
    ]
  }

  /// Names and numbers of the formats.
  static let words: [[UInt8]] =
    [
      "IHDR", "IDAT", "IEND", "PLTE", "tEXt", "iCCP", "eXIf", "RIFF", "WEBP", "VP8 ", "VP8L",
      "VP8X",
      "ANMF", "EXIF", "XMP ", "NETSCAPE2.0", "GIF89a", "ICC_PROFILE\0", "Exif\0\0", "jp2c",
    ].map { Array($0.utf8) } + [
      [0xff, 0xd8], [0xff, 0xd9], [0xff, 0xda], [0xff, 0xe1], [0xff, 0xfe], [0xff, 0xc0],
      [0xff, 0xff],
      [0x21, 0xf9, 4], [0x21, 0xfe], [0x2c], [0x3b], [0, 0, 0, 0],
    ]

  /// Returns a file, damaged as a rule.
  static func damaged(
    using generator: inout SeededGenerator
  ) throws -> (format: ImageFormat, bytes: [UInt8]) {
    let seeds = try all()
    var (format, bytes) = seeds[generator.number(0...seeds.count - 1)]
    Damage.apply(to: &bytes, words: words, using: &generator)
    return (format, bytes)
  }
}
