// PurgeScopeTests: tests which keys each purge scope matches.

import Testing

@testable import Core

struct PurgeScopeTests {
  /// Returns the keys of a URL: source and variant, each with and without a variation.
  private func keys(_ text: String) throws -> [CacheKey] {
    let url = try SourceURL(parsing: text)
    let keys = [CacheKey(source: url), CacheKey(source: url, transform: Transform())]
    return keys + keys.map { $0.varied(by: "0123abcd") }
  }

  private func matches(
    _ url: String, by scope: PurgeScope, filter: CacheKeyFilter = CacheKeyFilter()
  ) throws -> Bool {
    let answers = Set(try keys(url).map { scope.matches($0, filter: filter) })
    #expect(answers.count == 1, "all of a URL's keys or none: \(url)")
    return answers == [true]
  }

  @Test func `a URL scope matches that URL only, in every variation`() throws {
    let scope = PurgeScope.url(try SourceURL(parsing: "https://H/a.jpg"))
    #expect(try matches("https://h/a.jpg", by: scope))
    for other in ["https://h/a.jpg2", "https://h/a.jpg?x=1", "http://h/a.jpg", "https://h/"] {
      #expect(try !matches(other, by: scope), "\(other)")
    }
  }

  @Test func `a prefix scope matches a whole host and any start of path and query`() throws {
    let all = PurgeScope.prefix(try SourceURL(parsing: "https://h"))
    #expect(try matches("https://h/a.jpg?x=1", by: all))
    for other in ["https://h.au/a.jpg", "https://h:8443/a.jpg", "http://h/a.jpg"] {
      #expect(try !matches(other, by: all), "\(other)")
    }
    let part = PurgeScope.prefix(try SourceURL(parsing: "https://h/a?x=1"))
    #expect(try matches("https://h/a?x=12", by: part) && matches("https://h/a?x=1", by: part))
    #expect(try !matches("https://h/a", by: part) && !matches("https://h/a?x=2", by: part))
  }

  @Test(arguments: [
    ("http://a.example/1", "a.example"), ("https://a.example:8443/1?u=http://b/", "a.example"),
    ("http://[::1]:8080/1", "::1"), ("http://[2001:DB8::1]/1", "2001:db8::1"),
    ("local:///a.example/1", nil),
  ])
  func `a host scope matches every port of the host and no local file`(
    url: String, host: String?
  ) throws {
    for key in try keys(url) { #expect(key.host == host) }
    for name in ["a.example", "::1", "[::1]", "2001:db8::1"] {
      let matches = try matches(url, by: .host(try #require(HostPattern(name))))
      #expect(matches == (HostPattern.normalized(name) == host), "\(name)")
    }
    #expect(try matches(url, by: .host(try #require(HostPattern("*")))) == (host != nil))
    let below = try #require(HostPattern("*.example"))
    #expect(try matches(url, by: .host(below)) == (host == "a.example"))
  }

  @Test func `a tag scope matches the hosts whose rule has the tag`() throws {
    let filter = CacheKeyFilter(rules: [
      HostRule(host: try #require(HostPattern("a.example")), tags: ["shop"])
    ])
    #expect(try matches("http://a.example:81/1", by: .tag("shop"), filter: filter))
    #expect(try !matches("http://a.example/1", by: .tag("blog"), filter: filter))
    #expect(try !matches("http://b.example/1", by: .tag("shop"), filter: filter))
    #expect(try matches("local:///1", by: .everything))
  }
}
