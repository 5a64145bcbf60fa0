// PassThroughCheckTests: tests which images can be passed through, by their first bytes.

import Core
import TestSupport
import Testing

@testable import Managing

struct PassThroughCheckTests {
  private func head(_ bytes: [UInt8], as format: ImageFormat) -> PassThroughCheck {
    bytes.withUnsafeBytes { PassThroughCheck.read($0, as: format) }
  }

  private func webp(alpha: Bool = false, isExtended: Bool = false) throws -> [UInt8] {
    try TestImages.bareWebP(width: 40, height: 30, alpha: alpha, isExtended: isExtended)
  }

  private func movingWebP() throws -> [UInt8] {
    try TestImages.bareWebP(width: 40, height: 30, frames: 3)
  }

  private let size = PassThroughCheck.plain(PixelSize(width: 40, height: 30))

  @Test func `a plain image of each format is passed through with its size`() throws {
    #expect(head(try TestImages.jpeg(width: 40, height: 30, bare: true), as: .jpeg) == size)
    #expect(
      head(try TestImages.jpeg(width: 40, height: 30, progressive: true, bare: true), as: .jpeg)
        == size
    )
    #expect(head(try TestImages.png(width: 40, height: 30), as: .png) == size)
    #expect(head(try TestImages.png(width: 40, height: 30, palette: true), as: .png) == size)
    #expect(head(try TestImages.gif(width: 40, height: 30, frames: 3), as: .gif) == size)
    #expect(head(try webp(), as: .webp) == size)
    #expect(head(try webp(alpha: true, isExtended: true), as: .webp) == size)
    #expect(head(try movingWebP(), as: .webp) == size)
  }

  @Test func `an image that must be turned, converted or stripped needs work`() throws {
    let needy = [
      try TestImages.jpeg(width: 40, height: 30, orientation: 6),
      try TestImages.jpeg(width: 40, height: 30, profile: "p3"),
      try TestImages.jpeg(width: 40, height: 30),
    ]
    for bytes in needy { #expect(head(bytes, as: .jpeg) == .needsWork) }
    // A thumbnail in JFIF, and in its extension.
    let bare = try TestImages.jpeg(width: 40, height: 30, bare: true)
    let fixed: [UInt8] = Array("JFIF\0".utf8) + [1, 1, 0, 0, 1, 0, 1]
    for (content, isPlain) in [
      (fixed + [0, 0], true), (fixed + [1, 1, 9, 9, 9], false),
      (Array("JFXX\0".utf8) + [0x13, 1, 1, 9, 9, 9], false),
    ] {
      let segment = [0xff, 0xe0, 0, UInt8(content.count + 2)] + content
      let bytes = bare[..<2] + segment + bare[2...]
      #expect(head(Array(bytes), as: .jpeg) == (isPlain ? size : .needsWork))
    }
    #expect(
      head(try TestImages.png(width: 40, height: 30, sixteenBits: true), as: .png) == .needsWork)
  }

  @Test func `a PNG whose chunks state another colour space needs work`() throws {
    // Given
    let png = try TestImages.png(width: 40, height: 30)
    func head(with chunks: [(kind: String, content: [UInt8])]) -> PassThroughCheck {
      var bytes = Array(png[..<33])
      for (kind, content) in chunks {
        bytes += [0, 0, 0, UInt8(content.count)] + Array(kind.utf8) + content + [0, 0, 0, 0]
      }
      return self.head(bytes + png[33...], as: .png)
    }
    func numbers(_ values: [Int]) -> [UInt8] {
      values.flatMap { value in (0..<4).reversed().map { UInt8(value >> (8 * $0) & 255) } }
    }
    let sRGB = numbers([31_270, 32_900, 64_000, 33_000, 30_000, 60_000, 15_000, 6_000])
    let p3 = numbers([31_270, 32_900, 68_000, 32_000, 26_500, 69_000, 15_000, 6_000])
    // When, then
    #expect(head(with: [("gAMA", numbers([45_455])), ("cHRM", sRGB)]) == size)
    #expect(head(with: [("gAMA", numbers([100_000])), ("sRGB", [0])]) == size)
    #expect(head(with: [("cHRM", p3), ("sRGB", [1])]) == size)
    #expect(head(with: [("gAMA", numbers([100_000]))]) == .needsWork)
    #expect(head(with: [("cHRM", p3)]) == .needsWork)
    #expect(head(with: [("gAMA", numbers([45_455])), ("cHRM", p3)]) == .needsWork)
    #expect(head(with: [("PLTE", [1, 2, 3]), ("gAMA", numbers([100_000]))]) == size)
  }

  @Test func `an image in another format than the requested one needs work`() throws {
    let all: [(ImageFormat, [UInt8])] = [
      (.jpeg, try TestImages.jpeg(width: 40, height: 30, bare: true)),
      (.png, try TestImages.png(width: 40, height: 30)),
      (.gif, try TestImages.gif(width: 40, height: 30, frames: 1)),
      (.webp, try webp()),
    ]
    for (format, bytes) in all {
      for other in ImageFormat.allCases where other != format {
        #expect(head(bytes, as: other) == .needsWork)
      }
    }
  }

  @Test func `an image with metadata or a profile before its pixels needs work`() throws {
    let jpeg = try TestImages.jpeg(width: 40, height: 30, bare: true)
    for marker: UInt8 in [0xe1, 0xe2, 0xed, 0xfe] {
      let segment: [UInt8] = [0xff, marker, 0, 6] + Array("abcd".utf8)
      #expect(head(Array(jpeg[..<2]) + segment + jpeg[2...], as: .jpeg) == .needsWork)
    }
    let png = try TestImages.png(width: 40, height: 30)
    for kind in ["tEXt", "zTXt", "iTXt", "eXIf", "iCCP", "acTL", "abCd"] {
      let chunk = [0, 0, 0, 1] + Array(kind.utf8) + [65, 0, 0, 0, 0]
      #expect(head(Array(png[..<33]) + chunk + png[33...], as: .png) == .needsWork)
    }
    let gif = try TestImages.gif(width: 40, height: 30, frames: 1)
    let table = gif[10] & 0x80 == 0 ? 0 : 3 << (Int(gif[10] & 7) + 1)
    let comment: [UInt8] = [0x21, 0xfe, 2, 65, 66, 0]
    #expect(
      head(Array(gif[..<(13 + table)]) + comment + gif[(13 + table)...], as: .gif) == .needsWork)
    for flag: UInt8 in [0x20, 0x08, 0x04] {
      var webp = try movingWebP()
      webp[20] |= flag
      #expect(head(webp, as: .webp) == .needsWork)
    }
  }

  @Test func `an incomplete head is awaited up to the limit`()
    throws
  {
    let all: [(ImageFormat, [UInt8])] = [
      (.jpeg, try TestImages.jpeg(width: 40, height: 30, bare: true)),
      (.png, try TestImages.png(width: 40, height: 30)),
      (.gif, try TestImages.gif(width: 40, height: 30, frames: 2)),
      (.webp, try webp()),
    ]
    for (format, bytes) in all {
      var isKnown = false
      for count in 0...bytes.count {
        let verdict = head(Array(bytes[..<count]), as: format)
        // The result is `incomplete` until it is known, and does not change afterwards.
        #expect(verdict == (isKnown ? size : verdict == size ? size : .incomplete))
        isKnown = isKnown || verdict == size
      }
      #expect(isKnown)
    }
    // A segment that claims a huge length.
    let endless =
      [0xff, 0xd8] + Array(repeating: [0xff, 0xe0, 0xff, 0xff], count: 1).flatMap { $0 }
    let filled = endless.map { UInt8($0) } + [UInt8](repeating: 0, count: PassThroughCheck.limit)
    #expect(head(Array(filled[..<1_000]), as: .jpeg) == .incomplete)
    #expect(head(filled, as: .jpeg) == .needsWork)
  }

  @Test func `impossible dimensions need work`() {
    func png(width: [UInt8], height: [UInt8]) -> [UInt8] {
      [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 13] + Array("IHDR".utf8) + width
        + height + [8, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9] + Array("IDAT".utf8)
    }
    let maximum: [UInt8] = [0x7f, 0xff, 0xff, 0xff]
    let all: [UInt8] = [0xff, 0xff, 0xff, 0xff]
    #expect(head(png(width: all, height: all), as: .png) == .needsWork)
    #expect(head(png(width: maximum, height: all), as: .png) == .needsWork)
    #expect(head(png(width: [0, 0, 0, 0], height: maximum), as: .png) == .needsWork)
    let size = PixelSize(width: Int(Int32.max), height: Int(Int32.max))
    #expect(head(png(width: maximum, height: maximum), as: .png) == .plain(size))
  }

  @Test func `damaged heads get a verdict without a crash`() throws {
    var random = SeededGenerator(seed: 7)
    let all: [(ImageFormat, [UInt8])] = [
      (.jpeg, try TestImages.jpeg(width: 40, height: 30, bare: true)),
      (.png, try TestImages.png(width: 40, height: 30)),
      (.gif, try TestImages.gif(width: 40, height: 30, frames: 2)),
      (.webp, try movingWebP()),
    ]
    var verdicts: Set<String> = []
    for step in 0..<40_000 {
      var (format, bytes) = all[step % all.count]
      for _ in 0..<Int.random(in: 1...4, using: &random) {
        bytes[Int.random(in: 0..<min(bytes.count, 64), using: &random)] =
          UInt8.random(in: 0...255, using: &random)
      }
      let verdict = head(
        Array(bytes.prefix(Int.random(in: 0...bytes.count, using: &random))), as: format)
      if case .plain(let size) = verdict { #expect(size.width > 0 && size.height > 0) }
      verdicts.insert("\(verdict)".prefix { $0 != "(" }.description)
    }
    #expect(verdicts == ["incomplete", "needsWork", "plain"])
  }
}
