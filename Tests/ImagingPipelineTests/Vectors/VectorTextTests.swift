// VectorTextTests: SVGs that browsers draw and librsvg does not are rewritten first.

import CDeflate
import Model
import TestSupport
import Testing

@testable import ImagingPipeline

@Suite(.onOwnThreads) struct VectorTextTests {
  private static let lime: [UInt8] = [0, 255, 0, 255]

  private static func svg(_ content: String, root: String = "width='20' height='10'") -> String {
    "<svg xmlns='http://www.w3.org/2000/svg' \(root)>\(content)</svg>"
  }

  private static func colour(_ bytes: [UInt8]) throws -> [UInt8] {
    try Made(bytes) { $0.format = .png }.pixels()[5, 5]
  }

  private static let rect = "<rect width='20' height='10' fill='var(--c)'/>"

  @Test(arguments: [
    svg("<rect width='20' height='10' fill='var(--c, lime)'/>"),
    svg("<rect width='20' height='10' style='fill:var( --c ,lime )'/>"),
    svg("<rect width='20' height='10' fill='var(--a, var(--b, rgb(0, 255, 0)))'/>"),
    svg("<style>rect{fill:var(--c,lime)}</style><rect width='20' height='10'/>"),
    svg("<style><![CDATA[:root{--c:lime}]]></style>" + rect),
    svg("<style>svg{--a:lime;--c:var(--a)}</style>" + rect),
    svg(rect, root: "width='20' height='10' style='--c:lime'"),
  ])
  func `variables have their value, or their fallback`(text: String) throws {
    #expect(try Self.colour(Array(text.utf8)) == Self.lime)
  }

  @Test func `variables that refer to each other cost no more than their text`() {
    let values = (0..<60).map { "--v\($0):var(--v\($0 + 1)) var(--v\($0 + 1));" }.joined()
    let text = Self.svg("<style>:root{\(values)--v60:lime}</style><rect fill='var(--v0)'/>")
    #expect(Array(text.utf8).withUnsafeBytes { VectorText.mended($0) } == nil)
    let loop = Self.svg("<style>:root{--c:var(--c)}</style>" + Self.rect)
    #expect(Array(loop.utf8).withUnsafeBytes { VectorText.mended($0) } == nil)
  }

  @Test func `text that is shown keeps its words`() throws {
    let text = Self.svg("<text>var(--c, x)</text><!-- var(--c, x) --><g fill='var(--c, red)'/>")
    let mended = try #require(Array(text.utf8).withUnsafeBytes { VectorText.mended($0) })
    #expect(
      String(decoding: mended, as: UTF8.self)
        == text.split(separator: "fill=")[0] + "fill='red'/></svg>")
  }

  @Test(arguments: [false, true], [false, true])
  func `UTF-16 is read in both orders`(isLittle: Bool, hasDeclaration: Bool) throws {
    let declaration = hasDeclaration ? "<?xml version='1.0' encoding='UTF-16'?>" : ""
    let text =
      declaration + Self.svg("<title>Grün 😀</title><rect width='20' height='10' fill='lime'/>")
    let bytes = ("\u{feff}" + text).utf16.flatMap { unit in
      let both = [UInt8(unit & 255), UInt8(unit >> 8)]
      return isLittle ? both : both.reversed()
    }
    #expect(try Self.colour(bytes) == Self.lime)
  }

  /// Returns a gzip file of stored or compressed bytes.
  private static func gzip(_ bytes: [UInt8]) throws -> [UInt8] {
    let compressor = try #require(libdeflate_alloc_compressor(6))
    defer { libdeflate_free_compressor(compressor) }
    let room = libdeflate_gzip_compress_bound(compressor, bytes.count)
    return [UInt8](unsafeUninitializedCapacity: room) { buffer, used in
      used = libdeflate_gzip_compress(compressor, bytes, bytes.count, buffer.baseAddress, room)
    }
  }

  @Test func `a compressed SVG is inflated, up to a limit`() throws {
    let text = Self.svg("<rect width='20' height='10' fill='var(--c,lime)'/>")
    #expect(try Self.colour(try Self.gzip(Array(text.utf8))) == Self.lime)
    let bomb = text + String(repeating: " ", count: VectorText.maximum)
    for other in [Array(bomb.utf8), Array("text".utf8), []] {
      guard case .unsupportedFormat = Made.error(try Self.gzip(other)) else {
        Issue.record("not refused: \(other.count) bytes")
        continue
      }
    }
  }

  @Test(arguments: [("width='200'", 200, 150), ("height='50'", 300, 50)])
  func `a side that is missing without a viewBox is that of browsers`(
    root: String, width: Int, height: Int
  ) throws {
    let prolog = "<!-- <svg> --><!DOCTYPE svg>"
    let text = prolog + Self.svg("<rect width='20' height='10' fill='lime'/>", root: root)
    #expect(try Made(Array(text.utf8)).size == PixelSize(width: width, height: height))
  }
}
