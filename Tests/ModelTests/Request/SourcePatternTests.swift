// SourcePatternTests: tests of SourcePattern, PathReading and PortRange.

import Core
import Testing

@Suite struct SourcePatternTests {
  private func covers(_ pattern: String, url: String) throws -> Bool {
    let pattern = try #require(SourcePattern(pattern), "\(pattern)")
    let url = try SourceURL(parsing: url)
    return pattern.covers(host: url.host, port: url.port, path: PathReading(url.path))
  }

  private func touches(_ pattern: String, url: String) throws -> Bool {
    let pattern = try #require(SourcePattern(pattern), "\(pattern)")
    let url = try SourceURL(parsing: url)
    return pattern.touches(host: url.host, port: url.port, path: PathReading(url.path))
  }

  @Test(arguments: [
    ("example.com", "example.com"), ("*.Example.com:8443", "*.example.com:8443"),
    ("*", "*"), ("*:8080/a", "*:8080/a"), ("example.com/a/b/", "example.com/a/b"),
    ("example.com/", "example.com"), ("example.com//a", "example.com/a"), ("::1", "::1"),
    ("[::1]", "::1"), ("[::1]:8080/x", "[::1]:8080/x"), ("10.0.0.1:81", "10.0.0.1:81"),
    ("example.com/a%20b", "example.com/a%20b"), ("example.com/%61", "example.com/a"),
  ])
  func `a pattern is read and printed in canonical form, and read again`(
    text: String, canonical: String
  ) throws {
    let pattern = try #require(SourcePattern(text))
    #expect(pattern.description == canonical)
    #expect(SourcePattern(canonical) == pattern)
  }

  @Test(arguments: [
    "", "/a", ":80", "http://a/", "a:0", "a:65536", "a:080", "a:", "a:8x", "a..b", "a b", "a/?q",
    "a/#f", "a/../b", "a/.", "a/%2e%2e/b", "a/b%2fc", "a/b\\c", "a/..;x/b", "*a", "a/b c", "[::1",
    "[::1]:", "user@a", "*.",
  ])
  func `a pattern without one meaning is refused`(text: String) {
    #expect(SourcePattern(text) == nil)
  }

  @Test(arguments: [
    ("example.com", "http://example.com/a", true),
    ("example.com", "https://example.com:444/", true),
    ("example.com:443", "https://example.com/", true),
    ("example.com:443", "http://example.com/", false),
    ("example.com:8443", "https://example.com:8443/a", true), ("*:8080", "http://a.b:8080/", true),
    ("*:8080", "http://a.b/", false), ("*.example.com:80", "http://a.example.com/", true),
    ("*.example.com:80", "http://example.com/", false), ("[::1]:80", "http://[::1]/a", true),
    ("example.com/shop", "http://example.com/shop", true),
    ("example.com/shop", "http://example.com/shop/", true),
    ("example.com/shop", "http://example.com/shop/a/b?c", true),
    ("example.com/shop", "http://example.com//shop/a", true),
    ("example.com/shop", "http://example.com/sho%70/a", true),
    ("example.com/shop", "http://example.com/a/../shop/a", true),
    ("example.com/shop", "http://example.com/shopping", false),
    ("example.com/shop", "http://example.com/", false),
    ("example.com/shop", "http://example.com/Shop/a", false),
    ("example.com/shop", "http://example.com/a/shop", false),
    ("example.com:81/shop", "http://example.com/shop", false),
  ])
  func `a pattern covers whole segments of a path at its port`(
    pattern: String, url: String, isCovered: Bool
  ) throws {
    #expect(try covers(pattern, url: url) == isCovered)
    #expect(try touches(pattern, url: url) == isCovered)
  }

  @Test(arguments: [
    "/public/../private/a", "/public/%2e%2e/private/a", "/public/.%2E/private/a",
    "/public/..%2fprivate/a", "/public%2f..%2fprivate/a", "/public/..\\private/a",
    "/public/..%5cprivate/a", "/public/..;/private/a", "/public/..;a=b/private/a",
    "/public/x/../../private/a", "/public/%2e%2e%2fprivate/a", "/x/..%2fprivate/a",
    "/./%2e/private/a", "//private/a", "/%70rivate/a", "/public/../../../private/a",
  ])
  func `no spelling of a path leaves an allowed folder or hides from a denied one`(path: String)
    throws
  {
    let url = "http://example.com\(path)"
    #expect(try !covers("example.com/public", url: url))
    #expect(try touches("example.com/private", url: url))
  }

  @Test(arguments: [
    ("80", 80...80), ("1-65535", 1...65_535), ("8000-8000", 8_000...8_000),
    ("1024-65535", 1_024...65_535),
  ])
  func `a range of ports has both ends`(text: String, ports: ClosedRange<Int>) throws {
    #expect(try #require(PortRange(text)).ports == ports)
  }

  @Test(arguments: [
    "", "0", "-", "80-", "-80", "81-80", "65536", "1-65536", "080", "8 0", "80-81-82", "٨", "+80",
  ])
  func `a malformed range of ports is refused`(text: String) {
    #expect(PortRange(text) == nil)
  }
}
