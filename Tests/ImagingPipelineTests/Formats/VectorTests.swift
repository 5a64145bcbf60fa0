// VectorTests: SVGs are rendered at the requested size, without access to files or network.

import FoundationEssentials
import Model
import TestSupport
import Testing

@Suite(.onOwnThreads) struct VectorTests {
  @Test(arguments: [10, 100, 333, 1_000])
  func `an SVG is drawn at the requested size`(width: Int) throws {
    // given: 30 by 20 units, with an edge in the middle
    let made = try Made(TestImages.svg(width: 30, height: 20)) { $0.width = width }
    // when
    let pixels = try made.pixels()
    // then
    #expect(made.size.width == width && pixels.size == made.size)
    let row = made.size.height * 3 / 4
    #expect(isClose(pixels.rgb(x: width / 2 - 1 - width % 2, y: row), to: [255, 0, 0], within: 2))
    #expect(isClose(pixels.rgb(x: width / 2 + 1, y: row), to: [0, 0, 255], within: 2))
  }

  @Test func `an SVG without a size has the size of its viewBox`() throws {
    #expect(
      try Made(TestImages.svg(width: 30, height: 20, isSized: false)).size
        == PixelSize(width: 30, height: 20))
  }

  @Test func `an SVG without size and viewBox has the size of its drawing`() throws {
    let text = "<svg xmlns='http://www.w3.org/2000/svg'><rect width='50' height='40'/></svg>"
    #expect(try Made(Array(text.utf8)).size == PixelSize(width: 50, height: 40))
  }

  @Test func `an SVG without content and size is undecodable`() {
    guard
      case .undecodable = Made.error(Array("<svg xmlns='http://www.w3.org/2000/svg'/>".utf8))
    else {
      Issue.record("not refused")
      return
    }
  }

  @Test func `a vector image is stretched exactly by fill`() throws {
    let made = try Made(TestImages.svg(width: 30, height: 20)) {
      $0.width = 101
      $0.height = 33
      $0.fit = .fill
    }
    #expect(try made.pixels().size == PixelSize(width: 101, height: 33))
  }

  @Test func `unpainted areas of an SVG are transparent`() throws {
    let text =
      "<svg xmlns='http://www.w3.org/2000/svg' width='20' height='20'><rect width='10' height='20'/></svg>"
    let pixels = try Made(Array(text.utf8)).pixels()
    #expect(pixels[5, 10] == [0, 0, 0, 255] && pixels[15, 10][3] == 0)
  }

  @Test(arguments: ["file://%", "%"])
  func `an SVG cannot show files of the host`(address: String) throws {
    // given: an SVG that refers to a red image in a file by its path
    let folder = try TemporaryFolder()
    let red = try TestImages.encode(Pixels(width: 20, height: 20, color: [255, 0, 0]), as: ".png")
    try folder.write("red.png", bytes: red)
    let link = address.split(separator: "%", omittingEmptySubsequences: false)
      .joined(separator: folder.path + "/red.png")
    let text = """
      <svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" \
      width="20" height="20"><rect width="20" height="20" fill="#00ff00"/>\
      <image xlink:href="\(link)" href="\(link)" width="20" height="20"/></svg>
      """
    // when
    let made = try Made(Array(text.utf8))
    // then: the shapes below the image are still visible
    #expect(isClose(try made.pixels().rgb(x: 10, y: 10), to: [0, 255, 0], within: 0))
  }

  @Test func `an SVG can embed images, but only in supported formats`() throws {
    // given: 2 by 2 red pixels, as a PNG and as a BMP (24 bits, rows padded to 4 bytes)
    let png = try TestImages.encode(Pixels(width: 2, height: 2, color: [255, 0, 0]), as: ".png")
    let row: [UInt8] = [0, 0, 255, 0, 0, 255, 0, 0]
    let bmp: [UInt8] =
      Array("BM".utf8) + [
        70, 0, 0, 0, 0, 0, 0, 0, 54, 0, 0, 0, 40, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0,
      ]
      + [1, 0, 24, 0, 0, 0, 0, 0, 16, 0, 0, 0] + [UInt8](repeating: 0, count: 16) + row + row
    func drawn(_ image: [UInt8], as type: String) throws -> [UInt8] {
      let link = "data:image/\(type);base64,\(Data(image).base64EncodedString())"
      let text = """
        <svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" \
        width="20" height="20"><rect width="20" height="20" fill="#00ff00"/>\
        <image xlink:href="\(link)" width="20" height="20"/></svg>
        """
      return try Made(Array(text.utf8)).pixels().rgb(x: 10, y: 10)
    }
    // then: the shapes below are visible where no image is drawn
    #expect(isClose(try drawn(png, as: "png"), to: [255, 0, 0], within: 2))
    #expect(isClose(try drawn(bmp, as: "bmp"), to: [0, 255, 0], within: 0))
  }

  @Test func `an SVG cannot read files through entities or inclusion`() throws {
    for text in [
      """
      <?xml version="1.0"?><!DOCTYPE svg [<!ENTITY x SYSTEM "file:///etc/passwd">]>
      <svg xmlns="http://www.w3.org/2000/svg" width="200" height="20"><text y="15">&x;</text></svg>
      """,
      """
      <svg xmlns="http://www.w3.org/2000/svg" xmlns:xi="http://www.w3.org/2001/XInclude" width="200" \
      height="20"><text y="15"><xi:include parse="text" href="file:///etc/passwd"/></text></svg>
      """,
    ] {
      // Rejected or blank, but never with text.
      guard let made = try? Made(Array(text.utf8)) else { continue }
      #expect(try made.pixels().values.allSatisfy { $0 == 0 })
    }
  }
}
