// VectorLimitsTests: what an SVG may hold is limited before it is drawn.

import Core
import TestSupport
import Testing

@testable import ImagingPipeline

@Suite(.onOwnThreads) struct VectorLimitsTests {
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

  private static func chain(_ count: Int) -> String {
    (1...count).reduce(##"<path id="u0"/>"##) {
      $0 + ##"<g id="u\##($1)"><use href="#u\##($1 - 1)"/></g>"##
    }
  }

  private static func limits(_ body: String, before: String = "") throws -> VectorLimits {
    try Array((before + open + body + "</svg>").utf8).withUnsafeBytes {
      try VectorLimits(checking: $0, limits: ImagingLimits())
    }
  }

  private static let unbounded: [(before: String, body: String, words: String)] = [
    ("", nested("<path/>", depth: 6), "draws more than"),
    ("", nested("<path/>", depth: 100), "draws more than"), ("", chain(40), "nest deeper"),
    ("", ##"<g id="a"><use href="#a"/></g>"##, "nest deeper"),
    ("", ##"<g id="a"><use href="&#35;a"/></g>"##, "nest deeper"),
    ("", ##"<g id="a"><use href="#b"/></g><g id="b"><use href="#a"/></g>"##, "nest deeper"),
    ("", ##"<pattern id="a"><use href="#a"/></pattern>"##, "nest deeper"),
    ("", repeated("<path/>", 500_000), "has more than"), ("", repeated("<g>", 300), "each other"),
    ("<!DOCTYPE svg [<!ENTITY e '<g/>'>]>", "&e;", "entities"),
    ("<!DOCTYPE svg [<!ENTITY e '&#60;g/>'>]>", "&e;", "entities"),
    ("<!DOCTYPE svg [<!ENTITY % e 'x'>]>", "", "entities"),
    ("<!DOCTYPE svg [<!ENTITY e '#a'>]>", "<use href='&e;'/>", "given by entities"),
    ("<!DOCTYPE svg [<!ENTITY e 'a'>]>", "<g id='&e;'/>", "given by entities"),
    ("<!DOCTYPE svg [<!-- >]>", "", "no end"),
    ("<!DOCTYPE svg [<!-- ' --><?x \" > ?>]>", ##"<g id="a"><use href="#a"/></g>"##, "nest deeper"),
    ("<!-- <defs> > --><!-- \" --><?x <g?>", ##"<g id="a"><use href="#a"/></g>"##, "nest deeper"),
  ]

  @Test(arguments: unbounded.indices)
  func `an SVG without a bound is refused, with what it has too much of`(index: Int) {
    let (before, body, words) = Self.unbounded[index]
    #expect {
      try Self.limits(body, before: before)
    } throws: {
      guard case .tooCostly(let reason, _)? = $0 as? ImageError else { return false }
      return reason.contains(words)
    }
  }

  private static let ordinary: [(name: String, body: String)] = [
    (
      "a sprite sheet",
      "<defs>"
        + (0..<300).map {
          ##"<symbol id="s\##($0)"><path d="M0 0h9v9z"/><circle r="4"/></symbol>"##
        }
        .joined() + "</defs>" + (0..<3_000).map { ##"<use href="#s\##($0 % 300)"/>"## }.joined()
    ),
    (
      "an illustration with classes, gradients, clip paths and masks",
      "<style>.a{fill:url(#l)}.b{clip-path:url(#c)}.d{mask:url(#m);opacity:0.5}</style>"
        + ##"<linearGradient id="l"><stop/></linearGradient><clipPath id="c"><use href="#r"/>"##
        + ##"</clipPath><rect id="r"/><mask id="m"><rect class="a"/></mask>"##
        + repeated(##"<path class="a" d="M0 0h9"/>"##, 5_000)
        + repeated(##"<g class="b a"/>"##, 500) + repeated(##"<g class="d"/>"##, 20)
    ),
    ("links", ##"<a href="#top"><text id="top">up</text></a><a href="#top"/>"##),
    ("names of editors", ##"<g inkscape:export-filename="C:\Users\me\logo (1).png"/>"##),
    ("a style", "<style>/* <![CDATA[ */ .a{fill:red} /* ]]> */</style>"),
    ("quotes", ##"<rect style="fill:url(&quot;#a&quot;)" x="&unknown;"/>"##),
    ("more end tags than start tags", "</g></g></svg></svg>"),
    ("uses within uses", chain(15)),
    ("references to nothing", ##"<use href="#x"/><use href="y"/>"##),
  ]

  @Test(arguments: ordinary.indices)
  func `what ordinary programs write is drawn`(index: Int) throws {
    let (name, body) = Self.ordinary[index]
    let adobe =
      #"<!DOCTYPE svg [<!ENTITY a "http://ns.adobe.com/a/"><!ATTLIST svg xmlns:x CDATA #FIXED "u">]>"#
    for before in ["", adobe, ##"<?xml-stylesheet href="style.css"?>"##] {
      #expect(throws: Never.self, "\(name)") { try Self.limits(body, before: before) }
    }
  }

  @Test func `elements count as often as they are drawn`() throws {
    #expect(try Self.limits(Self.nested("<path/>", depth: 2)).drawnElements > 100)
    #expect(try Self.limits(Self.repeated("<path/>", 50)).drawnElements == 51)
  }

  // MARK: The job

  /// Returns for each decoding of a job whether it is told as expensive before.
  private func admitted(
    _ body: String, _ change: (inout Transform) -> Void
  ) throws -> [Bool] {
    let source = Array((Self.open + body + "</svg>").utf8)
    return try Made.costs(of: source, isBegun: true) {
      $0.format = .png
      change(&$0)
    }.map { $0.isExpensive(ImagingLimits()) }
  }

  @Test func `a drawing with many filters waits as an expensive job, a small one does not`() throws
  {
    let filters =
      ##"<filter id="f"><feGaussianBlur stdDeviation="9"/></filter>"##
      + Self.repeated(##"<rect width="1000" height="1000" filter="url(#f)"/>"##, 9)
    #expect(try admitted(filters) { $0.width = 600 } == [true])
    #expect(try admitted(filters) { $0.width = 60 } == [false])
    // Trimming draws it at another size.
    #expect(
      try admitted(filters) {
        $0.width = 60
        $0.selection.trim = 1
      } == [true, false])
    #expect(try admitted("<path d='M0 0h9v9z'/>") { $0.width = 3_000 } == [false])
  }
}
