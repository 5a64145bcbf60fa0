// VectorImagesTests: images that an SVG contains are checked like sources.

import FoundationEssentials
import ImagingWire
import Model
import TestSupport
import Testing

@testable import ImagingPipeline

@Suite(.onOwnThreads) struct VectorImagesTests {
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
    var limits = ImagingLimits()
    limits.maximumPixels = 3_000_000
    let large = link(TestImages.blackPNG(width: 1_200, height: 1_000))
    // Then
    #expect(Made.error(svg([large, large]), limits: limits) == nil)
    #expect(Made.error(svg([large, large, large]), limits: limits)?.code == "too_many_pixels")
    let huge = link(TestImages.blackPNG(width: 60_000, height: 60_000))
    #expect(Made.error(svg([huge]))?.code == "too_many_pixels")
  }

  @Test(arguments: [
    "data:image/png;base64,iVBORw0KGgo", "data:image/png;base64,*", "data:,", "data:", "data",
    "https://example.org/a.png?b=1&amp;c=2", "images\\a.png", "#a", "",
  ])
  func `what is no image is not drawn`(link: String) throws {
    let pixels = try Made(svg([link])) { $0.format = .png }.pixels()
    #expect(pixels.values.allSatisfy { $0 == 0 })
  }
}
