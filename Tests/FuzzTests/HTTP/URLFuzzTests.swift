// URLFuzzTests: URLs of sources have one form each, and percent-encoding has an inverse.

import TestSupport
import Testing

@testable import Model

@Suite(.onOwnThreads) struct URLFuzzTests {
  static let words = [
    "http://", "https://", "HTTP://", "local://", "local:///", "s3://", "ftp://", "h",
    "Example.COM", "a.b",
    "/", "/", "//", ".", "..", "%2e", "%2F", "%25", "%", "%zz", "?", "#", "&", "=", "a=1", ":80",
    ":443", ":0", ":080", ":99999", "@", "u:p@", "[::1]", "[::FFFF:1.2.3.4]", "[", "]", "%5B", "é",
    "ä.de", "xn--", "\\", " ", "+", "{", "|", "\"", "<", "^", "`", "\u{7f}", "\t", "@2x.png",
    "%402x.png", "127.0.0.1", "*", "~", "😀", "%C3%A9", "%ff", "%00", "_", "-",
  ]

  @Test func `the form of a URL is the form of itself`() throws {
    var known = 0
    try Fuzz.texts(
      "urls", usual: 4_000,
      make: { generator in
        let start = generator.pick(
          "http://h", "https://h/", "local:///", "", "HTTP://H", "s3://bucket/", "s3://b")
        var bytes = Array((start + generator.sentence(of: Self.words, most: 8)).utf8)
        if generator.isOne(of: 3) { Damage.apply(to: &bytes, using: &generator) }
        return String(decoding: bytes, as: UTF8.self)
      },
      check: { text in
        guard let url = try? SourceURL(parsing: text) else { return }
        known += 1
        let again: SourceURL
        do throws(ImageError) {
          again = try SourceURL(parsing: url.text)
        } catch {
          throw Fault(description: "\(text): \(url.text) is refused: \(error)")
        }
        try hold(again == url, "\(text): \(url) becomes \(again)")
        // Names of objects have a parser of their own.
        if url.scheme != .s3 {
          try hold(try SourceURL(normalizing: url.text) == url, "\(url.text) has two forms")
        }
        try hold(url.text.utf8.allSatisfy { (0x21...0x7e).contains($0) }, url.text)
        try hold((1...3).contains(url.density), "density \(url.density)")
        try hold(url.path.hasPrefix("/"), "path \(url.path)")
        // Keys are read back from the disk.
        let key = CacheKey(source: url, transform: Transform())
        try hold(CacheKey(text: key.text).source == CacheKey(source: url), "key \(key)")
        try hold(key.url == url.text, "URL of key \(key)")
        try hold((key.host ?? "") == url.host, "host of key \(key)")
        try hold(url.keepingParameters(where: { _ in true }) == url, "parameters of \(url.text)")
        let bare = url.keepingParameters(where: { _ in false })
        try hold(!bare.text.contains("?"), "\(bare.text) without parameters")
      })
    #expect(known > 100)
  }

  @Test func `percent-encoding has an inverse, and decoding does not grow`() throws {
    try Fuzz.texts(
      "percent", usual: 4_000, make: { $0.sentence(of: Self.words, most: 10) },
      check: { text in
        let encoded = PercentEncoding.encode(text)
        try hold(PercentEncoding.decode(encoded.utf8) == text, text)
        if let decoded = PercentEncoding.decode(text.utf8) {
          try hold(decoded.utf8.count <= text.utf8.count && !decoded.utf8.contains(0), text)
          // A text that is decoded strictly is decoded leniently to the same.
          try hold(PercentEncoding.decodeLeniently(text.utf8) == Array(decoded.utf8), text)
        }
      })
  }
}
