// VectorCostTests: the cost of drawing an SVG is estimated before it is drawn.

import ImagingWire
import Model
import TestSupport
import Testing

@testable import ImagingPipeline

@Suite(.onOwnThreads) struct VectorCostTests {
  private static func svg(_ filter: String, uses: Int = 1, style: String = "") -> [UInt8] {
    let shape = ##"<rect width="1000" height="1000" fill="red" filter="url(#f)"/>"##
    return Array(
      (##"<svg xmlns="http://www.w3.org/2000/svg" width="1000" height="1000"><style>"## + style
        + ##"</style><filter id="f" x="0" y="0" width="1" height="1">"## + filter + "</filter>"
        + String(repeating: shape, count: uses) + "</svg>").utf8)
  }

  @Test(arguments: [
    (##"<feMorphology radius="20"/>"##, 1, ""), (##"<feGaussianBlur stdDeviation="9"/>"##, 40, ""),
    (##"<feTurbulence numOctaves="300"/>"##, 1, ""), (##"<feConvolveMatrix order="60"/>"##, 1, ""),
    (##"<fe:feOffset dx="1"/>"##, 30, "rect { filter: url(#f) }"),
  ])
  func `an SVG with filters is drawn small, and too costly as a large variant`(
    filter: String, uses: Int, style: String
  ) {
    let bytes = Self.svg(filter, uses: uses, style: style)
    func error(_ width: Int) -> ImageError? {
      bytes.withUnsafeBytes { bytes in
        let size = PixelSize(width: width, height: width)
        do throws(ImageError) {
          try VectorCost.check(bytes, drawn: size, nominal: PixelSize(width: 1_000, height: 1_000))
          return nil
        } catch {
          return error
        }
      }
    }
    #expect(error(100) == nil)
    guard case .ofVariant(.tooCostly) = error(4_000) else {
      Issue.record("\(String(describing: error(4_000)))")
      return
    }
  }

  @Test func `the pipeline refuses a costly filter at a large size only`() {
    let bytes = Self.svg(##"<feMorphology radius="20"/>"##)
    #expect(Made.error(bytes) { $0.width = 100 } == nil)
    #expect(Made.error(bytes) { $0.width = 3_000 }?.code == "too_costly")
  }

  @Test(arguments: [
    "url(#f)", "url('#f')", "url(  #f)", "url(&#35;f)", "url(&#x23;f)", "blur(0) url(#f)",
    ##"url(\23 f)"##,
  ])
  func `a filter counts in every form of reference`(reference: String) {
    let svg =
      ##"<svg xmlns="http://www.w3.org/2000/svg"><filter id="f"><feTurbulence numOctaves="300"/>"##
      + ##"</filter><rect filter="\##(reference)"/></svg>"##
    Array(svg.utf8).withUnsafeBytes {
      #expect(VectorCost($0).seconds(drawn: PixelSize(width: 4_000, height: 4_000), scale: 1) > 4)
    }
  }

  @Test func `a vector image without filters costs nearly nothing, whatever its references`() {
    let gradient =
      ##"<svg xmlns="http://www.w3.org/2000/svg"><linearGradient id="f"/>"##
      + ##"<path fill="url(#f)"/></svg>"##
    Array(gradient.utf8).withUnsafeBytes {
      #expect(
        VectorCost($0).seconds(drawn: PixelSize(width: 9_000, height: 9_000), scale: 9) < 0.001)
    }
  }

  // MARK: Content that is drawn again and again

  private static let open =
    ##"<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" "##
    + ##"width="1000" height="1000">"##

  private static func repeated(_ text: String, _ count: Int) -> String {
    String(repeating: text, count: count)
  }

  /// Groups that each use the one before ten times.
  private static func nested(_ content: String, depth: Int) -> String {
    (1...depth).reduce(##"<g id="g0">\##(content)</g>"##) { text, level in
      text + ##"<g id="g\##(level)">"## + repeated(##"<use xlink:href="#g\##(level - 1)"/>"##, 10)
        + "</g>"
    }
  }

  private static let turbulence =
    ##"<filter id="f"><feTurbulence baseFrequency="0.05" numOctaves="9"/></filter>"##

  private static let costly: [(name: String, body: String)] = [
    (
      "a filter used 200 times",
      turbulence + ##"<defs><rect id="a" filter="url(#f)"/></defs>"##
        + repeated(##"<use href="#a"/>"##, 200)
    ),
    (
      "a filter of a class, used 200 times",
      "<style><![CDATA[ g > .k, .m { filter: url('#f') } ]]></style>" + turbulence
        + ##"<defs><rect id="a" class="x k"/></defs>"## + repeated(##"<use href="#a"/>"##, 200)
    ),
    (
      "a filter of any element",
      "<style>* { filter: url(#f) }</style>" + turbulence
        + repeated("<rect/>", 200)
    ),
    ("nested uses", nested(##"<path d="M0 0L9 9"/>"##, depth: 6)),
    (
      "nested uses of dashes",
      nested(##"<path d="M0 0L800 600L0 600" stroke-dasharray="1 1"/>"##, depth: 4)
    ),
    (
      "masks of masks",
      ##"<mask id="m0"><rect/></mask>"##
        + (1..<30).map { ##"<mask id="m\##($0)"><rect mask="url(#m\##($0 - 1))"/></mask>"## }
        .joined() + repeated(##"<rect mask="url(#m29)"/>"##, 40)
    ),
    (
      "a mask of a clip path",
      ##"<mask id="m"><rect/></mask><clipPath id="c"><path mask="url(#m)"/></clipPath>"##
        + repeated(##"<path clip-path="url(#c)"/>"##, 2_000)
    ),
    ("layers", nested(##"<g opacity="0.5"/>"##, depth: 4)),
    ("layers of a style", nested(##"<g style="fill:red;opacity:.5"/>"##, depth: 4)),
    (
      "a pattern of layers",
      ##"<pattern id="p"><g opacity=".5"/><g opacity=".5"/></pattern>"##
        + repeated(##"<rect fill="url(#p)"/>"##, 2_000)
    ),
    (
      "a marker of layers at each vertex",
      ##"<marker id="k"><g opacity=".5"/></marker><path marker-mid="url(#k)" d="M0 0"##
        + repeated("l1 1", 9_000) + ##""/>"##
    ),
    (
      "tiny dashes",
      ##"<path d="M0 0"##
        + repeated("L800 600L0 600", 300) + ##"" stroke-dasharray="0.01 0.01"/>"##
    ),
    (
      "tiny dashes of a group",
      ##"<g style="stroke-dasharray: .01"><path d="M0 0h9"##
        + repeated("c0 0 0 0 800 600v-600s0 0-800 0", 300) + ##""/></g>"##
    ),
    ("a long text", "<text>" + repeated("Wg", 20_000) + "</text>"),
    ("content that contains itself", ##"<g id="a"><use href="#a"/></g>"##),
    (
      "an escaped reference", turbulence + ##"<rect filter="url(\23 f)"/>"##
    ),
    (
      "a reference by character",
      ##"<g id="a">"## + repeated("<path/>", 1_000) + "</g>"
        + repeated(##"<use href="&#35;a"/>"##, 1_000)
    ),
    (
      "a filter behind a comment",
      ##"<!-- <defs> > --><!-- " --><?x <g?>"## + turbulence
        + repeated(##"<rect data=">" filter="url(#f)"/>"##, 200)
    ),
  ]

  private func seconds(_ text: String, side: Int = 1_000) -> Double {
    Array(text.utf8).withUnsafeBytes {
      let cost = VectorCost($0)
      return cost.seconds(
        drawn: PixelSize(width: side, height: side), scale: Double(side) / 1_000)
        - cost.plainSeconds
    }
  }

  @Test(arguments: costly.indices)
  func `content counts as often as it is drawn`(index: Int) {
    let (name, body) = Self.costly[index]
    let found = seconds(Self.open + body + "</svg>")
    #expect(found > 4, "\(name): \(found)")
  }

  @Test func `entities that contain elements are refused, others are not`() {
    func document(_ entity: String) -> String {
      #"<!DOCTYPE svg PUBLIC "x>" "y" [ <!ENTITY e "\#(entity)"> <!ENTITY n 'http://n/'> ]>"#
        + Self.open + ##"<rect id="r"/>&e;<use href="#r"/></svg>"##
    }
    #expect(seconds(document("<path/>")) == .infinity)
    #expect(seconds(document("&#60;path/>")) == .infinity)
    #expect(seconds(document("text")) < 0.1)
  }

  @Test func `time and memory of the estimate do not depend on how content is nested`() {
    // Given: a million uses in 100 levels, and 200,000 groups within each other
    #expect(seconds(Self.open + Self.nested("<path/>", depth: 100) + "</svg>") > 1e9)
    let deep = Self.repeated("<g>", 200_000) + Self.repeated("</g>", 200_000)
    #expect(seconds(Self.open + deep + "</svg>") < 0.1)
    // More end tags than start tags, and no end at all
    #expect(seconds("</g></g>" + Self.open + "<g><path d='M0 0") < 0.1)
    #expect(seconds("") == 0)
  }

  // MARK: Content that is drawn as before

  private static let harmless: [(name: String, body: String)] = [
    (
      "a sprite sheet",
      "<defs>"
        + (0..<300).map {
          ##"<symbol id="s\##($0)"><path d="M0 0h9v9z"/><circle r="4"/></symbol>"##
        }
        .joined() + "</defs>" + (0..<3_000).map { ##"<use href="#s\##($0 % 300)"/>"## }.joined()
    ),
    (
      "a map with dashed roads and icons",
      ##"<g id="icon"><circle r="3"/><path d="M0 0l5 5"/></g>"##
        + (0..<2_000).map {
          ##"<path stroke-dasharray="5 3" d="M\##($0 % 900) 40"## + repeated("l3.5-2", 60)
            + ##""/><use href="#icon" x="\##($0)"/>"##
        }.joined()
    ),
    (
      "icons with shadows",
      ##"<filter id="s"><feGaussianBlur stdDeviation="2"/><feOffset dy="1"/></filter>"##
        + repeated(##"<path filter="url(#s)" d="M0 0h9"/>"##, 12)
    ),
    (
      "an illustration with classes, gradients, clip paths and masks",
      "<style>.a{fill:url(#l)}.b{clip-path:url(#c)}.d{mask:url(#m);opacity:0.5}</style>"
        + ##"<linearGradient id="l"><stop/></linearGradient><clipPath id="c"><use href="#r"/>"##
        + ##"</clipPath><rect id="r"/><mask id="m"><rect class="a"/></mask>"##
        + repeated(##"<path class="a" d="M0 0h9"/>"##, 5_000)
        + repeated(##"<g class="b a"/>"##, 500) + repeated(##"<g class="d"/>"##, 20)
    ),
    ("a plot of transparent points", repeated(##"<circle style="opacity:.5"/>"##, 1_000)),
    ("links", ##"<a href="#top"><text id="top">up</text></a><a href="#top"/>"##),
    (
      "quoted references",
      ##"<rect style="fill:url(&quot;#a&quot;)" font-family="&quot;A&quot;"/>"##
    ),
    ("labels", repeated("<text>Sankt Augustin</text>", 2_000)),
    (
      "a large plain document",
      repeated(##"<path d="M10.5 20.25l3.5-2.25l1.5 2.5l7 7l7-7"/>"##, 100_000)
    ),
  ]

  @Test(arguments: harmless.indices)
  func `what is drawn in time is not refused`(index: Int) {
    let (name, body) = Self.harmless[index]
    let found = seconds(Self.open + body + "</svg>")
    #expect(found < 2, "\(name): \(found)")
  }

  @Test func `sprites and icons are rendered, repeated filters and masks are refused`() {
    for (name, body) in Self.harmless.prefix(4) {
      #expect(
        Made.error(Array((Self.open + body + "</svg>").utf8)) { $0.width = 40 } == nil, "\(name)")
    }
    for (name, body) in Self.costly.prefix(3) {
      let error = Made.error(Array((Self.open + body + "</svg>").utf8)) { $0.width = 2_000 }
      #expect(error?.code == "too_costly" && error?.isOfSource == false, "\(name)")
    }
  }

  // MARK: The job

  @Test func `a vector is expensive from a tenth of a second on`() {
    func isExpensive(_ seconds: Double) -> Bool {
      var cost = JobCost()
      cost.add(drawing: seconds)
      return cost.isExpensive(ImagingLimits())
    }
    #expect(!isExpensive(0.09) && isExpensive(0.11))
  }

  @Test func `a job for a costly vector is told as expensive before it is drawn`() throws {
    let bytes = Self.svg(##"<feGaussianBlur stdDeviation="9"/>"##, uses: 9)
    func admitted(_ change: (inout Transform) -> Void) throws -> [Bool] {
      var transform = Transform()
      transform.format = .png
      change(&transform)
      var found: [Bool] = []
      try bytes.withUnsafeBytes {
        _ = try Pipeline().process(
          $0, transform: transform, density: 1, limits: ImagingLimits(),
          admits: {
            found.append($0.isExpensive(ImagingLimits()))
            return true
          })
      }
      return found
    }
    #expect(try admitted { $0.width = 600 } == [true])
    #expect(try admitted { $0.width = 60 } == [false])
    // Trimming draws it at another size.
    #expect(
      try admitted {
        $0.width = 60
        $0.selection.trim = 1
      } == [true, false])
  }

  @Test func `trimming does not draw what is too costly`() {
    let error = Made.error(Self.svg(##"<feTurbulence numOctaves="300"/>"##)) {
      $0.width = 20
      $0.selection.trim = 1
    }
    #expect(error?.code == "too_costly")
  }
}
