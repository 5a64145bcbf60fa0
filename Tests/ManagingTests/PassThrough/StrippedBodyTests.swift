// StrippedBodyTests: metadata behind the head of a streamed image.

import Core
import TestSupport
import Testing

@testable import Managing

struct StrippedBodyTests {
  private let secret = Array("a secret".utf8)

  /// Returns the bytes as a reader gets them in pieces of a size.
  private func read(_ bytes: [UInt8], as format: ImageFormat, pieces: Int) -> [UInt8] {
    var bytes = bytes
    var blank = BlankedMetadata(format)
    bytes.withUnsafeMutableBytes { all in
      for start in stride(from: 0, to: all.count, by: pieces) {
        blank.apply(
          to: UnsafeMutableRawBufferPointer(
            rebasing: all[start..<min(start + pieces, all.count)]))
      }
    }
    return bytes
  }

  private func has(_ bytes: [UInt8]) -> Bool {
    bytes.indices.contains { bytes[$0...].starts(with: secret) }
  }

  /// Images with the secret behind their head, each at another place.
  private func images() throws -> [(ImageFormat, [UInt8])] {
    let jpeg = try TestImages.jpeg(width: 40, height: 30, progressive: true, bare: true)
    let png = try TestImages.png(width: 40, height: 30, palette: true)
    let gif = try TestImages.gif(width: 40, height: 30, frames: 3)
    let scan = try #require(
      jpeg.indices.dropFirst(4).last { jpeg[$0...].starts(with: [0xff, 0xda]) })
    func inserted(_ more: [UInt8], in bytes: [UInt8], at place: Int) -> [UInt8] {
      bytes[..<place] + more + bytes[place...]
    }
    let length = [0, UInt8(secret.count + 2)]
    let text: [UInt8] = [0, 0, 0, UInt8(secret.count)] + "tEXt".utf8 + secret + [0, 0, 0, 0]
    let block = [UInt8(secret.count)] + secret + [0]
    return [
      (.jpeg, jpeg + secret),
      (.jpeg, inserted([0xff, 0xfe] + length + secret, in: jpeg, at: scan)),
      (.jpeg, inserted([0xff, 0xff, 0xe1] + length + secret, in: jpeg, at: scan)),
      (.png, png + secret), (.png, inserted(text, in: png, at: png.count - 12)),
      (.gif, gif + secret), (.gif, inserted([0x21, 0xfe] + block, in: gif, at: gif.count - 1)),
      (
        .gif,
        inserted(
          [0x21, 0xff, 11] + "XMP DataXMP".utf8 + block, in: gif, at: gif.count - 1)
      ),
    ]
  }

  @Test(arguments: [1, 7, 100, 1 << 20])
  func `metadata becomes zeros, and the pixels stay`(pieces: Int) throws {
    for (number, (format, bytes)) in try images().enumerated() {
      let seen = read(bytes, as: format, pieces: pieces)
      #expect(has(bytes) && !has(seen), "\(number)")
      #expect(seen.count == bytes.count)
      #expect(try Pixels(decoding: seen).values == Pixels(decoding: bytes).values, "\(number)")
    }
  }

  @Test func `an empty extension of a GIF has no blocks`() throws {
    let start = Array(try TestImages.gif(width: 40, height: 30, frames: 3).dropLast())
    for label in [UInt8(0xfe), 0xf9, 0xff] {
      let image = start + [0x21, label, 0, 0x3b]
      let seen = read(image + secret, as: .gif, pieces: 100)
      #expect(seen == image + secret.map { _ in 0 })
    }
  }

  @Test func `a clean image stays as it is`() throws {
    for (format, bytes) in [
      (ImageFormat.jpeg, try TestImages.jpeg(width: 40, height: 30, bare: true)),
      (.jpeg, try TestImages.jpeg(width: 40, height: 30, progressive: true, bare: true)),
      (.png, try TestImages.png(width: 40, height: 30, palette: true)),
      (.gif, try TestImages.gif(width: 40, height: 30, frames: 3)),
      (.webp, try TestImages.bareWebP(width: 40, height: 30)),
    ] {
      for pieces in [1, 64, 1 << 20] {
        #expect(read(bytes, as: format, pieces: pieces) == bytes, "\(format) \(pieces)")
      }
    }
  }

  @Test func `damaged images are read without a crash`() throws {
    var random = SeededGenerator(seed: 9)
    for (format, bytes) in try images() {
      for _ in 0..<200 {
        var bytes = bytes
        bytes[Int.random(in: 0..<bytes.count, using: &random)] = .random(
          in: 0...255, using: &random)
        #expect(read(bytes, as: format, pieces: 50).count == bytes.count)
      }
    }
  }
}
