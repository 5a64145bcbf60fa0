// CacheKeyTests: tests that equivalent requests have equal keys and different ones do not.

import TestSupport
import Testing

@testable import Core

struct CacheKeyTests {
  private func key(_ change: (inout Transform) -> Void = { _ in }) throws -> CacheKey {
    var transform = Transform()
    change(&transform)
    return CacheKey(source: try SourceURL(parsing: "http://a/b.jpg"), transform: transform)
  }

  @Test func `a variant's key contains its source's key`() throws {
    let source = CacheKey(source: try SourceURL(parsing: "http://a/b.jpg"))
    #expect(source.isSource)
    for variant in [try key(), try key { $0.width = 10 }] {
      #expect(!variant.isSource)
      #expect(variant.source == source)
      #expect(variant != source)
    }
  }

  @Test func `a key tells its variation`() throws {
    for plain in [try key(), try key().source] {
      let varied = plain.varied(by: "abc1")
      #expect(plain.variation == nil)
      #expect(varied.variation == "abc1")
      #expect(CacheKey(text: varied.text).variation == "abc1")
      #expect(varied.source.variation == "abc1")
    }
  }

  @Test func `a key read back from its text is equal`() throws {
    for original in [try key(), try key { $0.scale = 0.5 }, try key().source] {
      let read = CacheKey(text: original.text)
      #expect(read == original)
      #expect(read.hashValue == original.hashValue)
      #expect(read.isSource == original.isSource)
    }
  }

  @Test
  func `the operator's quality is part of the key only where it can affect the result`()
    throws
  {
    func other(_ change: @escaping (inout Transform) -> Void) -> (inout Transform) -> Void {
      { transform in
        change(&transform)
        transform.qualities[.jpeg] = 70
      }
    }
    // It depends on it: a JPEG, or what may become one.
    let dependent: [(inout Transform) -> Void] = [
      { _ in }, { $0.format = .jpeg }, { $0.accepted = [.avif] }, { $0.maxBytes = 9 },
    ]
    for change in dependent { #expect(try key(change) != key(other(change))) }
    // It does not: another format, a quality of the request's own, no image.
    let independent: [(inout Transform) -> Void] = [
      { $0.format = .png }, { $0.format = .webp }, { $0.quality = 70 },
      {
        $0.format = .jpeg
        $0.quality = 80
      }, { $0.product = .info(nil) },
      { $0.product = .placeholder(.lqip) },
    ]
    for change in independent { #expect(try key(change) == key(other(change))) }
    // The contract's own numbers are no part of a key, and every other number is one of its own.
    #expect(try key { $0.qualities[.jpeg] = 80 } == key())
    #expect(
      try Set((1...100).map { quality in try key { $0.qualities[.jpeg] = quality } }).count == 100)
    #expect(
      try key {
        $0.qualities[.webp] = 60
        $0.accepted = [.avif, .webp]
      }.text
        == "http://a/b.jpg q_webp=60&auto=avif,webp")
  }

  @Test func `accepting other formats equals a request that names them`() throws {
    let url = try SourceURL(parsing: "http://a/b.jpg?id=1")
    let keyURL = try SourceURL(parsing: "http://a/b.jpg")
    var transform = Transform()
    transform.accepted = [.webp]
    let one = ImageRequest(source: url, transform: Transform(), keyURL: keyURL)
    let other = ImageRequest(source: url, transform: transform, keyURL: keyURL)
    #expect(one.accepting([.webp]) == other)
    let varied = one.forwarding([], variation: "abc")
    let asked = other.forwarding([], variation: "abc")
    #expect(varied.accepting([.webp]) == asked)
    #expect(varied.accepting([.webp]).key.source == varied.key.source)
  }

  @Test(arguments: [
    ("ff0000", Color(red: 255, green: 0, blue: 0)),
    ("00FF0080", Color(red: 0, green: 255, blue: 0, alpha: 128)),
    ("f80", Color(red: 255, green: 136, blue: 0)),
  ])
  func `colours are parsed from hexadecimal digits`(text: String, color: Color) {
    #expect(Color(hexadecimal: text) == color)
  }

  @Test(arguments: [
    "", "ff", "ffff", "#ff", "+ff", "界", "#ffffff", "gggggg", "fffffffff", "+fffff", "ff ff ff",
    "１２３４５６",
  ])
  func `malformed colours are refused`(text: String) {
    #expect(Color(hexadecimal: text) == nil)
  }

  @Test func `a written colour is parsed back unchanged`() {
    let color = Color(red: 1, green: 20, blue: 200, alpha: 0)
    #expect(color.hexadecimal == "0114c800")
    #expect(Color(hexadecimal: color.hexadecimal) == color)
  }
}
