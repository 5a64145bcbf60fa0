// CacheKeyFilterTests: tests which URLs share a cache key, and the purge tags of sources.

@testable import Core
import TestSupport
import Testing

struct CacheKeyFilterTests {
  private func filter(
    _ parameters: HostRule.Parameters, host: String = "example.com"
  ) throws -> CacheKeyFilter {
    CacheKeyFilter(rules: [
      HostRule(host: try #require(HostPattern(host)), parameters: parameters)
    ])
  }

  private func patterns(_ texts: String...) throws -> [ParameterPattern] {
    try texts.map { try #require(ParameterPattern($0)) }
  }

  private func keyURL(_ url: String, filter: CacheKeyFilter) throws -> String {
    filter.keyURL(of: try SourceURL(parsing: url)).text
  }

  @Test(arguments: [
    ("?utm_source=a&id=1&fbclid=b", "?id=1"), ("?id=1", "?id=1"), ("?utm_=1", ""),
    ("?utm_source=a", ""), ("?b=2&utm_x=1&a=1&b=3", "?b=2&a=1&b=3"), ("?UTM_x=1", "?UTM_x=1"),
    ("?my_utm_x=1&utm=2", "?my_utm_x=1&utm=2"), ("?%75tm_x=1&id=%41%2f", "?id=%41%2f"),
    ("?fbclid", ""), ("?fbclid2=1", "?fbclid2=1"), ("?a&&b", "?a&&b"), ("", ""), ("?", "?"),
    ("?a=utm_x=1", "?a=utm_x=1"), ("?x=%zz&utm_%zz=1", "?x=%25zz"),
  ])
  func `dropped parameters are removed from the key, and the others stay unchanged`(
    query: String, kept: String
  ) throws {
    let filter = try filter(.drop(try patterns("utm_*", "fbclid")))
    #expect(
      try keyURL("http://example.com/a.jpg" + query, filter: filter) == "http://example.com/a.jpg"
        + kept)
  }

  @Test(arguments: [
    ("?id=1&t=2", "?id=1"), ("?t=2", ""), ("?t=2&v3=%20&id=1", "?v3=%20&id=1"),
    // The origin reads this as `id`, so the filter must do so, too.
    ("?i%64=2", "?i%64=2"), ("?ID=2", ""), ("?&&id=1", "?id=1"), ("?id", "?id"),
  ])
  func `only kept parameters are part of the key`(query: String, kept: String) throws {
    let filter = try filter(.keep(try patterns("id", "v*")))
    #expect(
      try keyURL("https://example.com/a@2x.jpg" + query, filter: filter)
        == "https://example.com/a@2x.jpg" + kept)
  }

  @Test func `keeping no parameters or dropping all leaves no query`() throws {
    for parameters in [.keep([]), .drop(try patterns("*"))] as [HostRule.Parameters] {
      #expect(
        try keyURL("http://example.com/?a=1&b", filter: try filter(parameters))
          == "http://example.com/")
    }
  }

  @Test(arguments: ["", "a*b", "*a", "**"])
  func `malformed parameter patterns are refused`(text: String) {
    #expect(ParameterPattern(text) == nil)
  }

  @Test func `the first host rule that matches applies`() throws {
    let filter = CacheKeyFilter(rules: [
      HostRule(host: try #require(HostPattern("cdn.example.com")), tags: ["cdn", "fast"]),
      HostRule(
        host: try #require(HostPattern("*.example.com")), parameters: .keep([]),
        tags: ["example"], forwardedHeaders: ["X-Team"]),
    ])
    let first = try SourceURL(parsing: "http://CDN.example.com./a?b=1")
    let second = try SourceURL(parsing: "http://www.example.com/a?b=1")
    let none = try SourceURL(parsing: "http://example.org/a?b=1")
    #expect(filter.keyURL(of: first) == first)
    #expect(filter.keyURL(of: second).text == "http://www.example.com/a")
    #expect(filter.keyURL(of: none) == none)
    #expect(filter.tags(of: first) == ["cdn", "fast"])
    #expect(filter.tags(of: filter.keyURL(of: second)) == ["example"])
    #expect(filter.tags(of: none).isEmpty)
    #expect(filter.allTags == ["cdn", "example", "fast"])
    #expect(filter.rule(for: second)?.forwardedHeaders == ["X-Team"])
  }

  @Test(arguments: [
    ("http://EXAMPLE.com/?t=1", "example.com"),
    ("http://b\u{fc}cher.example/?t=1", "xn--bcher-kva.example"),
    ("http://[2001:DB8::1]/?t=1", "2001:db8::1"), ("http://192.0.2.1:8080/?t=1", "192.0.2.1"),
  ])
  func `host rules match the normalized host`(url: String, host: String) throws {
    let key = try filter(.keep([]), host: host).keyURL(of: try SourceURL(parsing: url))
    #expect(!key.text.contains("?"))
  }

  @Test func `local files match no host rule`() throws {
    let filter = try filter(.keep([]), host: "*")
    let url = try SourceURL(parsing: "local:///a%3Fb.jpg")
    #expect(filter.keyURL(of: url) == url)
    #expect(filter.rule(for: url) == nil)
  }

  @Test func `filtering a key's URL again does not change it`() throws {
    let filter = try filter(.drop(try patterns("t")))
    // `SourceURL` removes letter case, default port and fragment.
    let url = try SourceURL(parsing: "HTTPS://Example.com:443/a@3x.jpg?t=1&id=2#top")
    let key = filter.keyURL(of: url)
    #expect(key.text == "https://example.com/a@3x.jpg?id=2")
    #expect((key.host, key.port, key.path) == ("example.com", 443, "/a@3x.jpg"))
    #expect(key.density == 3)
    #expect(key.scheme == .https)
    #expect(filter.keyURL(of: key) == key)
    #expect(key == (try SourceURL(parsing: key.text)))
  }

  @Test func `a request's key uses the filtered URL, and its source keeps the full one`() throws {
    let filter = try filter(.drop(try patterns("t")))
    let source = try SourceURL(parsing: "http://example.com/a.jpg?t=1")
    let request = ImageRequest(
      source: source, transform: Transform(), keyURL: filter.keyURL(of: source))
    #expect(request.source == source)
    #expect(request.key.source.text == "http://example.com/a.jpg")
  }
}

struct ForwardedKeyTests {
  @Test func `forwarded headers give a request its own key and source key`() throws {
    let source = try SourceURL(parsing: "http://example.com/a.jpg")
    var transform = Transform()
    transform.width = 10
    let plain = ImageRequest(source: source, transform: transform)
    let field = try #require(HeaderField("X-Team", value: "red"))
    let varied = plain.forwarding([field], variation: "0123")
    #expect(varied.key.text == "http://example.com/a.jpg#0123 w=10")
    #expect(varied.key.source.text == "http://example.com/a.jpg#0123")
    #expect(varied.key.source.isSource && !varied.key.isSource)
    #expect(varied.key == CacheKey(text: varied.key.text))
    #expect(varied.key.source == CacheKey(text: varied.key.text).source)
    #expect(varied.key != plain.key)
    #expect(
      [varied.key.url, varied.key.source.url, plain.key.url].allSatisfy { $0 == source.text })
    #expect(varied.forwarded == [field])
    #expect(plain.forwarded.isEmpty)
  }

  @Test func `credentials are encoded as the RFCs specify`() {
    #expect(
      HeaderField(user: "Aladdin", password: "open sesame")?.value
        == "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==")
    #expect(HeaderField(bearer: "mF_9.B5f-4.1JqM")?.value == "Bearer mF_9.B5f-4.1JqM")
    #expect(HeaderField(user: "a:b", password: "c") == nil)
    #expect(HeaderField(user: "a", password: "c\nd") == nil)
    #expect(HeaderField(bearer: "a b") == nil && HeaderField(bearer: "") == nil)
  }

  @Test(arguments: [
    ("X-A", "a\r\nHost: b"), ("X-A", ""), ("X-A", " a"), ("X-A", "a\t"), ("X-A", "\u{0}"),
    ("X A", "a"), ("X:", "a"), ("", "a"), ("X-Ä", "a"),
  ])
  func `invalid header names and values are refused`(name: String, value: String) {
    #expect(HeaderField(name, value: value) == nil)
  }

  @Test func `a header field's description hides its value`() throws {
    let field = try #require(HeaderField("Authorization", value: "Bearer secret"))
    #expect("\(field)" == "Authorization")
  }
}
