// SVGSafetyTests: SVGs cannot use network, disk or scripts, or exhaust resources.

import Core
import TestSupport
import Testing

@Suite(.onOwnThreads) struct SVGSafetyTests {
  private static let green: [UInt8] = [0, 255, 0]

  /// Returns a green field with content on it.
  private func svg(_ content: String, before: String = "", attributes: String = "") -> [UInt8] {
    let text = """
      \(before)<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" \
      width="40" height="40" \(attributes)><rect width="40" height="40" fill="#00ff00"/>\
      \(content)</svg>
      """
    return Array(text.utf8)
  }

  /// Returns whether the file is rejected, or shows only the green field.
  private func showsNothing(_ bytes: [UInt8]) throws -> Bool {
    do {
      let pixels = try Made(bytes) { $0.format = .png }.pixels()
      return (0..<40).allSatisfy { y in
        (0..<40).allSatisfy { x in isClose(pixels.rgb(x: x, y: y), to: Self.green, within: 0) }
      }
    } catch ImageError.undecodable {
      return true
    }
  }

  /// Returns the ways in which an SVG can use an address.
  private func users(of address: String) -> [[UInt8]] {
    let links = "href=\"\(address)\" xlink:href=\"\(address)\""
    return [
      svg("<image \(links) width=\"40\" height=\"40\"/>"),
      svg("<use \(links) width=\"40\" height=\"40\"/>"),
      svg("<use href=\"\(address)#a\" xlink:href=\"\(address)#a\"/>"),
      svg(
        "<filter id=\"f\"><feImage \(links)/></filter><rect width=\"40\" height=\"40\" filter=\"url(#f)\" fill=\"#00ff00\"/>"
      ),
      svg("<style>@import url(\"\(address)\");</style>"),
      svg("<style>@import \"\(address)\"; </style>"),
      svg("<style>@font-face { font-family: a; src: url(\(address)) }</style>"),
      svg("", before: "<?xml-stylesheet type=\"text/css\" href=\"\(address)\"?>"),
      svg("", before: "<!DOCTYPE svg SYSTEM \"\(address)\">"),
      svg("&a;", before: "<!DOCTYPE svg [<!ENTITY a SYSTEM \"\(address)\">]>"),
      svg("", before: "<!DOCTYPE svg [<!ENTITY % a SYSTEM \"\(address)\"> %a;]>"),
      svg("<xi:include xmlns:xi=\"http://www.w3.org/2001/XInclude\" \(links)/>"),
      svg("<script \(links)/>"),
      svg("<foreignObject width=\"40\" height=\"40\"><iframe src=\"\(address)\"/></foreignObject>"),
    ]
  }

  @Test func `an SVG makes no network requests`() throws {
    // given: an origin with an image, a drawing and a style sheet
    let origin = try Origin()
    let red = try TestImages.encode(Pixels(width: 40, height: 40, color: [255, 0, 0]), as: ".png")
    origin.serve("/red.png", bytes: red, type: "image/png")
    origin.serve(
      "/red.svg", bytes: Array("<svg xmlns='http://www.w3.org/2000/svg'><rect id='a'/></svg>".utf8),
      type: "image/svg+xml")
    origin.serve("/red.css", bytes: Array("rect { fill: #ff0000 }".utf8), type: "text/css")
    // when, then
    for path in ["/red.png", "/red.svg", "/red.css"] {
      for bytes in users(of: origin.url(path)) {
        #expect(try showsNothing(bytes), "\(String(decoding: bytes, as: UTF8.self))")
      }
      #expect(origin.requests(to: path) == 0)
    }
  }

  @Test func `an SVG reads no files through any path`() throws {
    // given
    let folder = try TemporaryFolder()
    let red = try TestImages.encode(Pixels(width: 40, height: 40, color: [255, 0, 0]), as: ".png")
    try folder.write("red.png", bytes: red)
    try folder.write(
      "red.svg",
      bytes: Array(
        """
        <svg xmlns="http://www.w3.org/2000/svg" width="40" height="40"><g id="a">\
        <rect width="40" height="40" fill="#ff0000"/></g></svg>
        """.utf8))
    try folder.write("red.css", bytes: Array("rect { fill: #ff0000 }".utf8))
    let way = String(repeating: "../", count: 20) + folder.path.dropFirst()
    // when, then
    for name in ["red.png", "red.svg", "red.css"] {
      for start in ["file://" + folder.path, folder.path, way, "file://localhost" + folder.path] {
        for bytes in users(of: "\(start)/\(name)") {
          #expect(try showsNothing(bytes), "\(String(decoding: bytes, as: UTF8.self))")
        }
      }
    }
    for bytes in users(of: "file:///etc/passwd") + users(of: "/etc/passwd") {
      #expect(try showsNothing(bytes))
    }
  }

  @Test func `scripts and script events in an SVG do not run`() throws {
    let red = "document.querySelector('rect').setAttribute('fill', '#ff0000')"
    for bytes in [
      svg("<script>\(red)</script>"),
      svg("<script type=\"text/ecmascript\"><![CDATA[\(red)]]></script>"),
      svg("", attributes: "onload=\"\(red)\""),
      svg("<set attributeName=\"fill\" to=\"#ff0000\" begin=\"0s\"/>"),
      svg("<a href=\"javascript:\(red)\"><rect width=\"1\" height=\"1\" fill=\"#00ff00\"/></a>"),
    ] {
      #expect(try showsNothing(bytes))
    }
  }

  @Test func `unbounded expansion in an SVG causes an error`() {
    // given: nested entities, nested uses, and deeper nesting than in any real drawing
    let entities = (1...12).map {
      "<!ENTITY a\($0) \"\(String(repeating: "&a\($0 - 1);", count: 10))\">"
    }
    let uses = (1...25).map { index in
      let use = "<use href=\"#u\(index - 1)\" xlink:href=\"#u\(index - 1)\"/>"
      return "<g id=\"u\(index)\">\(String(repeating: use, count: 10))</g>"
    }
    let depth = 20_000
    for bytes in [
      svg(
        "<text>&a12;</text>", before: "<!DOCTYPE svg [<!ENTITY a0 \"lol\">\(entities.joined())]>"),
      svg(
        "<defs><rect id=\"u0\" width=\"1\" height=\"1\"/>\(uses.joined())</defs><use href=\"#u25\" xlink:href=\"#u25\"/>"
      ),
      svg(String(repeating: "<g>", count: depth) + String(repeating: "</g>", count: depth)),
    ] {
      let code = Made.error(bytes)?.code
      guard code == "undecodable" || code == "too_costly" else {
        Issue.record("not refused: \(String(decoding: bytes.prefix(200), as: UTF8.self))")
        continue
      }
    }
  }

  @Test func `cyclic references in an SVG end`() throws {
    let pattern =
      "<pattern id=\"p\" width=\"9\" height=\"9\"><rect width=\"9\" height=\"9\" fill=\"url(#p)\"/></pattern>"
    let mask = "<mask id=\"m\" mask=\"url(#m)\"><rect mask=\"url(#m)\"/></mask>"
    for content in [
      pattern, mask,
      "<linearGradient id=\"g\" href=\"#g\" xlink:href=\"#g\"/><rect fill=\"url(#g)\"/>",
    ] {
      #expect(try showsNothing(svg(content)))
    }
    let use = "<g id=\"a\"><use href=\"#a\" xlink:href=\"#a\"/></g>"
    #expect(Made.error(svg(use))?.code == "too_costly")
    // librsvg ends these itself, with or without an error.
    for content in [
      pattern + "<rect width=\"9\" height=\"9\" fill=\"url(#p)\"/>",
      mask + "<rect width=\"9\" height=\"9\" mask=\"url(#m)\"/>",
    ] { _ = Made.error(svg(content)) }
  }

  @Test(
    arguments: [
      ("width='100%' height='100%' viewBox='0 0 60 40'", 60, 40),
      ("width='50%' viewBox='0 0 60 40'", 60, 40), ("viewBox='-5 -5 60 40'", 60, 40),
      ("width='60' height='40'", 60, 40), ("width='60px' viewBox='0 0 120 80'", 60, 40),
      ("width='0.9' height='0.6' viewBox='0 0 60 40'", 1, 1),
      // libvips uses 72 pixels per inch.
      ("width='25.4mm' height='36pt'", 72, 36),
      ("width='1in' height='0.5in' viewBox='0 0 60 40'", 72, 36),
    ])
  func `an SVG size is accepted in any unit or omitted`(attributes: String, width: Int, height: Int)
    throws
  {
    let text =
      "<svg xmlns='http://www.w3.org/2000/svg' \(attributes)><rect x='-9' y='-9' width='200' height='200'/></svg>"
    let made = try Made(Array(text.utf8))
    #expect(made.size == PixelSize(width: width, height: height))
    // Each nominal size is drawn at the requested size.
    #expect(try Made(Array(text.utf8)) { $0.width = 120 }.size.width == 120)
  }

  @Test(arguments: ["1e9", "0.2", "2147483648", "1e300", "-5", "0", "nan"])
  func `an impossible SVG size is scaled down or refused`(side: String) throws {
    let text =
      "<svg xmlns='http://www.w3.org/2000/svg' width='\(side)' height='\(side)' viewBox='0 0 9 9'><rect width='9' height='9'/></svg>"
    for width in [nil, 40] {
      do {
        let made = try Made(Array(text.utf8), width: width) { $0.limitBytes = 40_000 }
        #expect(made.size.width <= 100 && made.size.height <= 100)
      } catch {
        guard case ImageError.undecodable = error else {
          Issue.record("\(side): \(error)")
          continue
        }
      }
    }
  }
}
