// PNGTextTests: texts of a PNG that inflate to gigabytes are left out.

import Core
import TestSupport
import Testing

@testable import ImagingPipeline

@Suite(.onOwnThreads) struct PNGTextTests {
  /// Returns chunks with a text that inflates to `count` bytes.
  private func text(_ name: String, count: Int, of texts: Int = 1) -> [UInt8] {
    let stream = TestImages.zeros(count)
    return (0..<texts).flatMap { number -> [UInt8] in
      let keyword = Array("k\(number)".utf8) + [0]
      let head: [UInt8] = name == "iTXt" ? [1, 0, 0, 0] : [0]
      return CodedPNG.chunk(name, content: keyword + head + stream)
    }
  }

  /// Returns a PNG with these chunks behind its header.
  private func png(with chunks: [UInt8]) throws -> [UInt8] {
    let plain = try TestImages.encode(.scene(width: 60, height: 40), as: ".png")
    // The signature and IHDR
    return plain[..<33] + chunks + plain[33...]
  }

  @Test(arguments: ["zTXt", "iTXt"])
  func `texts that inflate to gigabytes are left out`(name: String) throws {
    // Given 2.4 GB in 15 MB
    let plain = try png(with: [])
    let bomb = try png(with: text(name, count: 7_900_000, of: 300))
    // When
    let lean = bomb.withUnsafeBytes { PNGText.removed(from: $0) }
    // Then
    #expect(lean == plain)
    for strips in [true, false] {
      let made = try Made(bomb) { $0.stripsMetadata = strips }
      let expected = try Made(plain) { $0.stripsMetadata = strips }
      #expect(made.bytes == expected.bytes && made.format == expected.format)
    }
    let description = try Made(bomb) { $0.product = .info(nil) }
    #expect(description.isDescription)
  }

  @Test(arguments: ["zTXt", "iTXt"])
  func `an icon with such texts is refused, and a watermark is drawn without`(name: String) throws {
    let bomb = try png(with: text(name, count: 7_900_000, of: 3))
    #expect(Made.error(CodedBitmap.icon(of: [bomb]))?.code == "undecodable")
    #expect(
      Made.error(CodedBitmap.icon(of: [bomb])) { $0.product = .info(nil) }?.code == "undecodable")
    let plain = try png(with: [])
    #expect(try Made(CodedBitmap.icon(of: [plain])).size == PixelSize(width: 60, height: 40))
    #expect(try Made(plain, mark: Mark(bomb)).bytes == Made(plain, mark: Mark(plain)).bytes)
  }

  @Test(arguments: [(1, false), (2, true), (200, true)])
  func `texts of eight megabytes are kept, and no more`(texts: Int, isExcessive: Bool) throws {
    for name in ["zTXt", "iTXt"] {
      let source = try png(with: text(name, count: 7_900_000, of: texts))
      #expect(source.withUnsafeBytes { PNGText.isExcessive($0) } == isExcessive)
    }
  }

  @Test func `many small texts are kept`() throws {
    let source = try png(with: text("zTXt", count: 1_000, of: 900))
    #expect(source.withUnsafeBytes { PNGText.removed(from: $0) } == nil)
  }

  @Test func `a damaged stream counts as the most that its decoder inflates`() throws {
    // Given: streams whose last byte, of the checksum, is wrong
    var stream = TestImages.zeros(7_900_000)
    stream[stream.count - 1] ^= 1
    let chunk = CodedPNG.chunk("zTXt", content: Array("k".utf8) + [0, 0] + stream)
    let one = try png(with: chunk)
    let two = try png(with: chunk + chunk)
    // Then
    #expect(one.withUnsafeBytes { PNGText.removed(from: $0) } == nil)
    #expect(two.withUnsafeBytes { PNGText.removed(from: $0) } == (try png(with: [])))
  }

  @Test func `chunks without a text and files that end early are no text`() throws {
    for content: [UInt8] in [[], [65], [65, 0], [65, 0, 1], [65, 0, 1, 0, 0]] {
      for name in ["zTXt", "iTXt"] {
        let source = try png(with: CodedPNG.chunk(name, content: content))
        #expect(source.withUnsafeBytes { PNGText.removed(from: $0) } == nil)
        #expect(throws: Never.self) { try Made(source) }
      }
    }
    let bomb = try png(with: text("zTXt", count: 7_900_000, of: 4))
    let part = Array(bomb.dropLast(9))
    let lean = try #require(part.withUnsafeBytes { PNGText.removed(from: $0) })
    #expect(lean == Array(try png(with: []).dropLast(9)))
    #expect(Made.error(part)?.code == "undecodable")
  }
}
