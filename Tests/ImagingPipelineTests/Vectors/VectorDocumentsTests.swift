// VectorDocumentsTests: what the estimate of an SVG's cost reads, and what it refuses to follow.

import ImagingWire
import Model
import TestSupport
import Testing

@testable import ImagingPipeline

@Suite(.onOwnThreads) struct VectorDocumentsTests {
  private static let filter =
    ##"<filter id="f"><feTurbulence numOctaves="300"/></filter><g id="n"><path d="M0 0"/></g>"##

  private static func cost<Result>(
    of body: String, before: String = "", _ read: (VectorCost) -> Result
  ) -> Result {
    let text =
      before + #"<svg xmlns="http://www.w3.org/2000/svg" width="1000" height="1000">"# + filter
      + body + "</svg>"
    return Array(text.utf8).withUnsafeBytes { read(VectorCost($0)) }
  }

  private static func seconds(_ body: String, before: String = "", side: Int = 1_000) -> Double {
    cost(of: body, before: before) {
      $0.seconds(drawn: PixelSize(width: side, height: side), scale: Double(side) / 1_000)
    }
  }

  @Test(arguments: [
    ##"<g inkscape:export-filename="C:\Users\me\logo (1).png"/>"##,
    ##"<g textext:text="\(x\)" onclick="a('\n')" data-mjx="\frac(x)"/>"##,
    "<style>/* <![CDATA[ */ .a{fill:red} /* ]]> */</style>",
    "<style>.a{fill:red}/* a */</style><style>.b{fill:red}/* b */</style>",
    "<style><![CDATA[@import url(https://a.example/css?family=A&display=swap);]]></style>",
    "<style>@font-face{src:url(data:font/woff;base64,AAAA==)} .a\\:b{content:'\\e001'}</style>",
    "<text>" + String(repeating: " ", count: 60_000) + "a</text>",
    "<a>" + String(repeating: " \n", count: 60_000) + "</a>",
    ##"<path style="mix-blend-mode:normal;isolation:auto" x="&unknown;"/>"##,
    ##"<style>*{fill:url(#l)}</style><linearGradient id="l"><stop/></linearGradient><rect/>"##,
    ##"<rect FILTER="url(#f)" style="FILTER:url(#f)"/>"##,
    ##"<path marker-start="url(#k)" marker-end="url(#k)" d="M0 0\##(String(repeating: "l1 1", count: 9_000))"/>"##
      + ##"<marker id="k"><g opacity=".5"/></marker>"##,
  ])
  func `what ordinary programs write is not refused`(body: String) {
    #expect(Self.seconds(body, side: 100) < 1)
    #expect(Self.cost(of: body) { $0.opacity } == nil)
  }

  @Test func `small layers of a large drawing do not count for each tile`() {
    let layers = String(repeating: #"<path opacity=".5"/>"#, count: 160)
    #expect(Self.seconds(layers, side: 4_000) - Self.seconds("", side: 4_000) < 2)
  }

  @Test(arguments: [
    #"<!DOCTYPE svg [<!ENTITY a "http://ns.adobe.com/a/"><!ATTLIST svg xmlns:x CDATA #FIXED "u">]>"#,
    ##"<?xml-stylesheet href="style.css"?>"##, "<?xml version='1.0' encoding='UTF-8'?>",
  ])
  func `declarations of usual editors are not refused`(before: String) {
    #expect(Self.seconds("<path d='M0 0'/>", before: before, side: 100) < 1)
  }

  @Test(arguments: [
    ##"<rect filter="URL(#f)"/>"##, ##"<rect style="filter/**/:url(#f)"/>"##,
    ##"<rect filter="u\72l(#f)"/>"##, ##"<style>rect{filter:url(#f)</style><rect/>"##,
    ##"<style>rect{x:"}";filter:url(#f)}</style><rect/>"##,
    ##"<style>rect{fil<!-- -->ter:url(#f)}</style><rect/>"##,
    ##"<style>/* " */ rect{filter:url(#f)} /* " */</style><rect/>"##,
    ##"<rect class="\##(String(repeating: "b ", count: 4_000))a"/><style>.a{filter:url(#f)}</style>"##,
    ##"<rect filter="blur(1px)\##(String(repeating: " blur(9px)", count: 200))"/>"##,
    ##"<filter id="r"><feMorphology radius="\##(String(repeating: " ", count: 300))200"/></filter>"##
      + ##"<rect filter="url(#r)"/>"##,
  ])
  func `what librsvg draws counts, however it is written`(body: String) {
    #expect(Self.seconds(body + body, side: 4_000) - Self.seconds("", side: 4_000) > 500)
  }

  @Test(arguments: [
    ("<!DOCTYPE svg [<!-- ' -->]>", ##"<rect filter="url(#f)"/>"##),
    ("<!DOCTYPE svg [<?x \" > ?>]>", ##"<rect filter="url(#f)"/>"##),
  ])
  func `a comment in a declaration hides nothing`(before: String, body: String) {
    #expect(
      Self.seconds(body + body, before: before, side: 4_000) - Self.seconds("", side: 4_000) > 500)
  }

  @Test(arguments: [
    ("<!DOCTYPE svg [<!-- >]>", "", "declaration without an end"),
    ("<!DOCTYPE svg [<!ENTITY e '<g/>'>]>", "&e;", "contains elements"),
    ("<!DOCTYPE svg [<!ENTITY e 'url(#f)'>]>", "<rect filter='&e;'/>", "references"),
    ("<!DOCTYPE svg [<!ENTITY % e 'x'>]>", "", "declares others"),
    ("<!DOCTYPE svg [<!ATTLIST rect filter CDATA 'url(#f)'>]>", "<rect/>", "attributes"),
    ("<?xml-stylesheet href='data:text/css,a'?>", "", "processing instruction"),
    ("", "<style>@import url('data:text/css,a');</style>", "in a style sheet"),
    ("", ##"<rect filter="url(\23 f)"/>"##, "an escape"),
  ])
  func `an error names what the estimate does not follow`(
    before: String, body: String, words: String
  ) {
    #expect(Self.cost(of: body, before: before) { $0.opacity }?.contains(words) == true)
  }

  @Test(arguments: [
    "<style>*{" + String(repeating: "filter:url(#n);", count: 3_000) + "}</style>"
      + String(repeating: "<a/>", count: 10_000),
    "<style>" + String(repeating: "*{filter:url(#n)}", count: 3_000) + "</style>"
      + String(repeating: "<a/>", count: 10_000),
    "<style>.a{fill:url(#n)}</style>"
      + "<a class='\(String(repeating: "a ", count: 20_000))'/>",
    "<style>" + String(repeating: "a,", count: 10_000) + "b{"
      + String(repeating: "fill:url(#n);", count: 5_000) + "}</style>",
  ])
  func `memory is in proportion to the source`(body: String) {
    #expect(Self.cost(of: body) { $0.edgeCount } < body.utf8.count)
  }
}
