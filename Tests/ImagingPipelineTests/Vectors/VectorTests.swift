// VectorTests: SVGs at the requested size, the images in them, which are checked like sources, and
// those that are rewritten for librsvg.

import Core
import FoundationEssentials
import TestSupport
import Testing

@testable import ImagingPipeline

@Suite(.onOwnThreads) struct VectorTests {
  /// Returns a field of 40 by 40 with an image on it for each link.
  private func svg(
    _ links: [String], element: String = "image", attribute: String = "href", before: String = ""
  ) -> [UInt8] {
    let images = links.map { "<\(element) width=\"40\" height=\"40\" \(attribute)=\"\($0)\"/>" }
    return Array(
      (before
        + "<svg xmlns=\"http://www.w3.org/2000/svg\" xmlns:xlink=\"http://www.w3.org/1999/xlink\""
        + " width=\"40\" height=\"40\">\(images.joined())</svg>").utf8)
  }

  private func link(_ bytes: [UInt8], type: String = "image/png") -> String {
    "data:\(type);base64,\(Data(bytes).base64EncodedString())"
  }

  private func red(as format: String) throws -> [UInt8] {
    try TestImages.encode(Pixels(width: 40, height: 40, color: [255, 0, 0]), as: format)
  }

  /// A PNG with texts of 16 MB.
  private func bomb() throws -> [UInt8] {
    let plain = try red(as: ".png")
    let text = CodedPNG.chunk(
      "zTXt", content: Array("k".utf8) + [0, 0] + TestImages.zeros(7_900_000))
    return plain[..<33] + text + text + plain[33...]
  }

  @Test(arguments: ["href", "xlink:href"])
  func `a PNG and a JPEG are drawn`(attribute: String) throws {
    for (format, type) in [(".png", "image/png"), (".jpg[Q=99]", "image/jpeg")] {
      let image = try red(as: format)
      let pixels = try Made(svg([link(image, type: type)], attribute: attribute)) {
        $0.format = .png
      }.pixels()
      #expect(isClose(pixels.rgb(x: 20, y: 20), to: [255, 0, 0], within: 3))
    }
  }

  @Test func `a PNG whose texts inflate to too much is refused, however its URL is written`() throws
  {
    // Given
    let image = try bomb()
    let code = Data(image).base64EncodedString()
    let digits = image.map { ($0 < 16 ? "%0" : "%") + String($0, radix: 16) }
    let links = [
      "data:image/png;base64,\(code)", "data:image/png,\(digits.joined())",
      "data:image/png;base64,\n  \(code)", "  DATA:image/png;base64,\(code)",
      "&#100;ata&#x3a;image/png;base64,\(code)", "data:;charset=utf-8;base64,\(code)",
      "data:image/png;base64,\(code.prefix { $0 != "=" })", "data:image\\png;base64,\(code)",
      "data:image/png;x=base64,\(digits.joined())", "d&#10;ata:image/png;base64,\(code)",
      "data:image/png;bas&#9;e64,\(code)", "data:image/png; base64 ,\(code)",
    ]
    for link in links {
      for element in ["image", "feImage"] {
        #expect(
          Made.error(svg([link], element: element))?.code == "too_costly", "\(link.prefix(40))")
      }
    }
    for before in ["<!DOCTYPE svg [<!-- ' -->]>", "<!DOCTYPE svg [<?x ' ?>]>"] {
      #expect(Made.error(svg([links[0]], before: before))?.code == "too_costly")
    }
    // What an entity stands for is not followed, so even a small image is refused.
    let small = link(try red(as: ".png"))
    let entity = svg(["&a;"], before: "<!DOCTYPE svg [<!ENTITY a \"\(small)\">]>")
    #expect(Made.error(entity)?.code == "too_costly")
    // A description draws nothing.
    #expect(throws: Never.self) { try Made(svg([links[0]])) { $0.product = .info(nil) } }
  }

  @Test func `the pixels of all images count`() throws {
    // Given
    let limits = ImagingLimits { $0.maximumPixels = 3_000_000 }
    let large = link(TestImages.blackPNG(width: 1_200, height: 1_000))
    // Then
    #expect(Made.error(svg([large, large]), limits: limits) == nil)
    #expect(Made.error(svg([large, large, large]), limits: limits)?.code == "too_many_pixels")
    let huge = link(TestImages.blackPNG(width: 60_000, height: 60_000))
    #expect(Made.error(svg([huge]))?.code == "too_many_pixels")
  }

  @Test func `an image of another format is not drawn`() throws {
    // Given: red pixels as a BMP
    var bitmap = CodedBitmap(size: PixelSize(width: 2, height: 2), depth: 24)
    bitmap.pixels = [UInt32](repeating: 0xff_0000, count: 4)
    // Then
    let pixels = try Made(svg([link(bitmap.file, type: "image/bmp")]), format: .png).pixels()
    #expect(pixels.values.allSatisfy { $0 == 0 })
  }

  @Test(arguments: [
    "data:image/png;base64,iVBORw0KGgo", "data:image/png;base64,*", "data:,", "data:", "data",
    "https://example.org/a.png?b=1&amp;c=2", "images\\a.png", "#a", "",
  ])
  func `what is no image is not drawn`(link: String) throws {
    let pixels = try Made(svg([link])) { $0.format = .png }.pixels()
    #expect(pixels.values.allSatisfy { $0 == 0 })
  }

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

  @Test func `an SVG without size and viewBox has the size of its drawing`() throws {
    let text = "<svg xmlns='http://www.w3.org/2000/svg'><rect width='50' height='40'/></svg>"
    #expect(try Made(Array(text.utf8)).size == PixelSize(width: 50, height: 40))
  }

  @Test func `an SVG without content and size is undecodable`() {
    #expect(Made.isUndecodable(Array("<svg xmlns='http://www.w3.org/2000/svg'/>".utf8)))
  }

  @Test func `a vector image is stretched exactly by fill`() throws {
    let made = try Made(TestImages.svg(width: 30, height: 20), width: 101, height: 33, fit: .fill)
    #expect(try made.pixels().size == PixelSize(width: 101, height: 33))
  }

  @Test func `unpainted areas of an SVG are transparent`() throws {
    let text =
      "<svg xmlns='http://www.w3.org/2000/svg' width='20' height='20'><rect width='10' height='20'/></svg>"
    let pixels = try Made(Array(text.utf8)).pixels()
    #expect(pixels[5, 10] == [0, 0, 0, 255] && pixels[15, 10][3] == 0)
  }
}

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

  @Test func `a compressed SVG is inflated, up to a limit`() throws {
    let text = Self.svg("<rect width='20' height='10' fill='var(--c,lime)'/>")
    #expect(try Self.colour(TestCoding.gzip.encode(Array(text.utf8))) == Self.lime)
    let bomb = text + String(repeating: " ", count: VectorText.maximum)
    for other in [Array(bomb.utf8), Array("text".utf8), []] {
      #expect(Made.error(TestCoding.gzip.encode(other))?.code == "unsupported_format")
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
