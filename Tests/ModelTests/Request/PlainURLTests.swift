// PlainURLTests: tests that the fast parser for URLs agrees with Foundation.

import TestSupport
import Testing

@testable import Core

struct PlainURLTests {
  /// Returns the results of both parsers; `nil` for the fast one if it does not apply.
  private func ways(_ text: String) -> (short: SourceURL?, long: SourceURL?) {
    (PlainURL(text) == nil ? nil : try? SourceURL(parsing: text), try? SourceURL(normalizing: text))
  }

  @Test(arguments: [
    "http://example.org/a.jpg", "https://a.b-c.example:8443/x/y@2x.png?v=1&w=2?3",
    "http://127.0.0.1:18081/a;b,c=(d)!$&'*+~_.jpg", "http://example.org/", "http://h/?",
    "http://example.org:443/", "https://example.org:80//a//.b/..c",
  ])
  func `a plain URL takes the fast path with the same result`(text: String) throws {
    let (short, long) = ways(text)
    #expect(short != nil)
    #expect(short == long)
    #expect(short?.text == text)
    #expect(short?.density == long?.density)
  }

  @Test(arguments: [
    "http://h/a/../b", "http://h/.", "HTTP://example.org/a", "http://Example.org/a",
    "http://example.org", "http://example.org?x",
    "http://example.org:80/a", "https://example.org:443/", "http://example.org:/a",
    "http://example.org:08/a", "http://example.org:65536/a", "http://example.org:0/a",
    "http://u@example.org/a", "http://example.org/a%20b", "http://example.org/a#b",
    "http://example.org/a b", "http://[::1]/a", "http://éxample.org/a", "http://example.org/é",
    "http:///a", "https//example.org/a", "local:///a.jpg", "ftp://example.org/a", "", "http://",
    "http://example.org/a\u{0}", "http://example.org/[a]", "http://exa_mple.org/a",
  ])
  func `a URL that needs normalization or refusal takes the slow path`(text: String) {
    #expect(PlainURL(text) == nil)
  }

  @Test func `random URLs have equal results on both paths`() throws {
    var generator = SeededGenerator(seed: 7)
    let hosts = ["a", "example.org", "-", ".", "a..b", "127.0.0.1", "", "A", "é", "u@h", "[::1]"]
    let ports = ["", "", ":8", ":80", ":443", ":08", ":65535", ":65536", ":"]
    let pieces = [
      "a", "/", "..", ".", "?", "@2x.png", "&", "=", "+", "~", "!", "*", "'", "(", ";", ",", "_",
      ":",
      "//", "0", "-", "$", "%41", "#", "é",
    ]
    var short = 0
    for _ in 0..<20_000 {
      var text = Bool.random(using: &generator) ? "http://" : "https://"
      text += hosts.randomElement(using: &generator) ?? ""
      text += ports.randomElement(using: &generator) ?? ""
      if Int.random(in: 0..<9, using: &generator) > 0 { text += "/" }
      for _ in 0..<Int.random(in: 0...6, using: &generator) {
        text += pieces.randomElement(using: &generator) ?? ""
      }
      let found = ways(text)
      guard let one = found.short else { continue }
      short += 1
      let other = try #require(found.long, "\(text)")
      #expect(one == other && one.density == other.density, "\(text)")
    }
    #expect(short > 1_000)
  }
}
