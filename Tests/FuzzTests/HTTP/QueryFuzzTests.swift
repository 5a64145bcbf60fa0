// QueryFuzzTests: queries of /image, URLs of sources, and any bytes.

import TestSupport
import Testing

@testable import Core
@testable import Serving

@Suite(.onOwnThreads) struct QueryFuzzTests {
  private static let rules = RequestRules(ServerConfiguration())
  private static let names =
    ImageParameter.table.map(\.name) + ["width", "height", "q", "dpr", "W", "unknown", ""]
  private static let values = [
    "", "0", "1", "2", "90", "180", "255", "65535", "65536", "-1", "+1", "1.5", ".5", "1.", "0.0",
    "10", "1e3", "99999999999999999999", "0.00000000000000000001", "nan", "inside", "cover",
    "left-top",
    "entropy", "0.5,0.5", "1,1", "0,0,1,1", "0,0,0,0", "10000000,0,10000000,1", "h", "hv", "max",
    "fff", "ff0000", "ff000080", "+ffff", "ﬀ", "auto", "jpeg", "jpg", "avif", "placeholder", "lqip",
    "blurhash", "only", "bypass", "all", "none", "low", "high", "https://h/a.png",
    "http://H:80/%41", "local:///m.png", "é", "%", "a b", "a&b", "a=b",
  ]

  private static let codes: Set<String> = [
    "invalid_url", "invalid_parameter", "unknown_parameter", "missing_parameter",
    "forbidden_parameter",
  ]

  private typealias Pair = (name: String, value: String)

  /// Returns parameters, each at most once; most lists have a URL.
  private static func pairs(_ generator: inout SeededGenerator) -> [Pair] {
    var pairs: [Pair] = generator.isOne(of: 8) ? [] : [("url", "https://h/a.png")]
    for _ in 0..<generator.number(0...6) {
      let name = names.randomElement(using: &generator) ?? "w"
      guard !pairs.contains(where: { $0.name == name }) else { continue }
      pairs.append((name, values.randomElement(using: &generator) ?? "1"))
    }
    return pairs
  }

  private static func query(_ pairs: [Pair], encodedBy encode: (String) -> String) -> String {
    pairs.map { encode($0.name) + "=" + encode($0.value) }.joined(separator: "&")
  }

  /// Returns the request or the error.
  private static func parse(
    _ query: [UInt8], kind: ImageQuery.Kind = .image
  ) -> Result<ImageRequest, ImageError> {
    do throws(ImageError) {
      return .success(try ImageParameter.parse(query, rules: rules, kind: kind))
    } catch {
      return .failure(error)
    }
  }

  @Test func `the order and the encoding of parameters do not matter`() throws {
    var parsed = 0
    for seed in FuzzSeeds.run(usual: 3_000) {
      // Given
      var generator = SeededGenerator(seed: seed)
      let pairs = Self.pairs(&generator)
      let text = Self.query(pairs, encodedBy: PercentEncoding.encode)
      // When
      let shuffled = Self.query(
        pairs.shuffled(using: &generator), encodedBy: PercentEncoding.encode)
      let escaped = Self.query(pairs) { text in
        text.utf8.map { "%" + ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
      }
      // Then
      let queries = [text, shuffled, escaped].map { Self.parse(Array($0.utf8)) }
      switch (queries[0], queries[1], queries[2]) {
      case (.success(let request), .success(let other), .success(let third)):
        parsed += 1
        #expect(request.key == other.key && request.key == third.key, "seed \(seed): \(text)")
        #expect(request.transform == other.transform, "seed \(seed): \(text)")
        #expect(request.options == third.options, "seed \(seed): \(text)")
        #expect(CacheKey(text: request.key.text) == request.key)
        #expect(CacheKey(text: request.key.text).source == request.key.source)
      case (.failure(let error), .failure, .failure(let third)):
        #expect(error.code == third.code, "seed \(seed): \(text)")
      case (let first, let second, let third):
        Issue.record("seed \(seed): \(text): \(first), \(second), \(third)")
      }
    }
    #expect(parsed > 0)
  }

  @Test func `any bytes are a request or an error that names the query`() throws {
    var parsed = 0
    try Fuzz.run(
      "queries", usual: 4_000,
      make: { generator in
        let pairs = Self.pairs(&generator)
        let isEncoded = Bool.random(using: &generator)
        var bytes = Array(Self.query(pairs) { isEncoded ? PercentEncoding.encode($0) : $0 }.utf8)
        let words = (Self.names + Self.values + ["&", "="]).map { Array($0.utf8) }
        Damage.apply(to: &bytes, words: words, using: &generator)
        return bytes
      },
      check: { bytes in
        for kind in [ImageQuery.Kind.image, .info] {
          switch Self.parse(bytes, kind: kind) {
          case .success(let request):
            parsed += 1
            let text = request.key.text
            try hold(text.utf8.allSatisfy { $0 > 0x1f && $0 != 0x7f }, "key \(text)")
          case .failure(let error):
            try hold(Self.codes.contains(error.code), "\(error)")
          }
        }
      })
    #expect(parsed > 0)
  }

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
