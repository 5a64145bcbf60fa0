// TrailingDataCheckTests: tests the detection of metadata and appended data in whole images.

import Core
import TestSupport
import Testing

@testable import Managing

struct TrailingDataCheckTests {
  private func isClean(_ bytes: [UInt8], as format: ImageFormat) -> Bool {
    bytes.withUnsafeBytes { TrailingDataCheck.isClean($0, as: format) }
  }

  private func all() throws -> [(ImageFormat, [UInt8])] {
    [
      (.jpeg, try TestImages.jpeg(width: 40, height: 30, bare: true)),
      (.jpeg, try TestImages.jpeg(width: 40, height: 30, progressive: true, bare: true)),
      (.png, try TestImages.png(width: 40, height: 30, palette: true)),
      (.gif, try TestImages.gif(width: 40, height: 30, frames: 3)),
      (.webp, try TestImages.bareWebP(width: 40, height: 30)),
      (.webp, try TestImages.bareWebP(width: 40, height: 30, frames: 3)),
    ]
  }

  @Test func `a bare encoder's output is clean exactly to its end`() throws {
    for (format, bytes) in try all() {
      #expect(isClean(bytes, as: format), "\(format)")
      #expect(!isClean(bytes + [0], as: format), "\(format) with something behind it")
      for count in 0..<bytes.count { #expect(!isClean(Array(bytes[..<count]), as: format)) }
    }
  }

  @Test func `metadata and data after the pixels are found`() throws {
    let comment: [UInt8] = [0xff, 0xfe, 0, 6] + Array("text".utf8)
    let jpeg = try TestImages.jpeg(width: 40, height: 30, progressive: true, bare: true)
    #expect(!isClean(jpeg.dropLast(2) + comment + [0xff, 0xd9], as: .jpeg))
    let exif: [UInt8] = [0xff, 0xe1, 0, 6] + Array("Exif".utf8)
    #expect(!isClean(jpeg.dropLast(2) + exif + [0xff, 0xd9], as: .jpeg))
    // Between two scans: before the last one.
    let scan = try #require(
      jpeg.indices.dropLast().last { jpeg[$0] == 0xff && jpeg[$0 + 1] == 0xda })
    #expect(!isClean(Array(jpeg[..<scan]) + comment + jpeg[scan...], as: .jpeg))
    #expect(isClean(Array(jpeg[..<scan]) + [0xff, 0xff] + jpeg[scan...], as: .jpeg), "fill bytes")

    let png = try TestImages.png(width: 40, height: 30)
    for kind in ["tEXt", "eXIf", "tIME", "abCd"] {
      let chunk: [UInt8] = [0, 0, 0, 1] + Array(kind.utf8) + [65, 0, 0, 0, 0]
      #expect(!isClean(png.dropLast(12) + chunk + png.suffix(12), as: .png))
    }
    let gif = try TestImages.gif(width: 40, height: 30, frames: 2)
    let text: [UInt8] = [0x21, 0xfe, 2, 65, 66, 0]
    #expect(!isClean(gif.dropLast() + text + [0x3b], as: .gif))

    var webp = try TestImages.bareWebP(width: 40, height: 30) + Array("EXIF".utf8) + [0, 0, 0, 0]
    let length = webp.count - 8
    for byte in 0..<4 { webp[4 + byte] = UInt8(truncatingIfNeeded: length >> (8 * byte)) }
    #expect(!isClean(webp, as: .webp))
  }

  @Test func `damaged images are checked without a crash`() throws {
    var random = SeededGenerator(seed: 11)
    let all = try all()
    for step in 0..<12_000 {
      var (format, bytes) = all[step % all.count]
      for _ in 0..<Int.random(in: 1...4, using: &random) {
        bytes[Int.random(in: 0..<bytes.count, using: &random)] =
          UInt8.random(in: 0...255, using: &random)
      }
      _ = isClean(Array(bytes.prefix(Int.random(in: 0...bytes.count, using: &random))), as: format)
    }
  }
}
