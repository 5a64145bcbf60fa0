// HostPatternTests: tests HostPattern.

import Core
import Testing

struct HostPatternTests {
  @Test(arguments: [
    ("example.com", "example.com", true), ("example.com", "EXAMPLE.com.", true),
    ("Example.COM.", "example.com", true), ("example.com", "a.example.com", false),
    ("example.com", "badexample.com", false), ("*.example.com", "a.example.com", true),
    ("*.example.com", "a.b.Example.com", true), ("*.example.com", "example.com", false),
    ("*.example.com", "badexample.com", false), ("*.example.com", "example.com.evil.org", false),
    ("*", "example.com", true), ("*", "[::1]", true), ("192.0.2.1", "192.0.2.1", true),
    ("2001:db8::1", "[2001:db8::1]", true),
  ])
  func `a pattern matches its hosts and no others`(
    pattern: String, host: String, covers: Bool
  ) throws {
    #expect(try #require(HostPattern(pattern)).matches(host) == covers)
  }

  @Test(arguments: [
    "", "**", "*.", ".example.com", "a.*.com", "*example.com", "exa mple.com", "a/b", "a..b",
    "bücher.example", "http://example.com",
  ])
  func `malformed host patterns are refused`(_ text: String) {
    #expect(HostPattern(text) == nil)
  }
}
