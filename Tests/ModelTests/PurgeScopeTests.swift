// PurgeScopeTests: tests which keys each purge scope matches.

import Testing

@testable import Model

struct PurgeScopeTests {
  /// Returns the keys of a URL: source and variant, each with and without a variation.
  private func keys(_ text: String) throws -> [CacheKey] {
    let url = try SourceURL(parsing: text)
    let keys = [CacheKey(source: url), CacheKey(source: url, transform: Transform())]
    return keys + keys.map { $0.varied(by: "0123abcd") }
  }

  private func isMeant(
    _ url: String, by scope: PurgeScope, _ filter: CacheKeyFilter = CacheKeyFilter()
  ) throws -> Bool {
    let answers = Set(try keys(url).map { scope.matches($0, filter) })
    #expect(answers.count == 1, "all of a URL's keys or none: \(url)")
    return answers == [true]
  }

  @Test func `a URL's is of that URL alone, in every variation`() throws {
    let scope = PurgeScope.url(try SourceURL(parsing: "https://H/a.jpg"))
    #expect(try isMeant("https://h/a.jpg", by: scope))
    for other in ["https://h/a.jpg2", "https://h/a.jpg?x=1", "http://h/a.jpg", "https://h/"] {
      #expect(try !isMeant(other, by: scope), "\(other)")
    }
  }

  @Test func `a prefix has a whole host, and ends anywhere in path or query`() throws {
    let all = PurgeScope.prefix(try SourceURL(parsing: "https://h"))
    #expect(try isMeant("https://h/a.jpg?x=1", by: all))
    for other in ["https://h.au/a.jpg", "https://h:8443/a.jpg", "http://h/a.jpg"] {
      #expect(try !isMeant(other, by: all), "\(other)")
    }
    let part = PurgeScope.prefix(try SourceURL(parsing: "https://h/a?x=1"))
    #expect(try isMeant("https://h/a?x=12", by: part) && isMeant("https://h/a?x=1", by: part))
    #expect(try !isMeant("https://h/a", by: part) && !isMeant("https://h/a?x=2", by: part))
  }

  @Test(arguments: [
    ("http://a.example/1", "a.example"), ("https://a.example:8443/1?u=http://b/", "a.example"),
    ("http://[::1]:8080/1", "::1"), ("http://[2001:DB8::1]/1", "2001:db8::1"),
    ("local:///a.example/1", nil),
  ])
  func `a host's is of each of its ports, and of no local file`(
    url: String, host: String?
  ) throws {
    for key in try keys(url) { #expect(key.host == host) }
    for name in ["a.example", "::1", "[::1]", "2001:db8::1"] {
      let isMeant = try isMeant(url, by: .host(try #require(HostPattern(name))))
      #expect(isMeant == (HostPattern.normalized(name) == host), "\(name)")
    }
    #expect(try isMeant(url, by: .host(try #require(HostPattern("*")))) == (host != nil))
    let below = try #require(HostPattern("*.example"))
    #expect(try isMeant(url, by: .host(below)) == (host == "a.example"))
  }

  @Test func `a tag's is of the hosts whose rule has it`() throws {
    let filter = CacheKeyFilter(rules: [
      HostRule(host: try #require(HostPattern("a.example")), tags: ["shop"])
    ])
    #expect(try isMeant("http://a.example:81/1", by: .tag("shop"), filter))
    #expect(try !isMeant("http://a.example/1", by: .tag("blog"), filter))
    #expect(try !isMeant("http://b.example/1", by: .tag("shop"), filter))
    #expect(try isMeant("local:///1", by: .everything))
  }
}
