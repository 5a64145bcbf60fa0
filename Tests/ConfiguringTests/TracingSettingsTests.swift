// TracingSettingsTests: the collector of spans and its header fields.

import Testing

@testable import Core

struct TracingSettingsTests {
  @Test(arguments: [
    ("", true), ("http://127.0.0.1:4318/v1/traces", true),
    ("https://c.example/v1/traces?a=b", true),
    ("http://[::1]:4318/v1/traces", true), ("http://c.example/", true),
    ("http://c.example:4318", false), ("c.example/v1/traces", false), ("ftp://c.example/x", false),
    ("http://user:secret@c.example/v1/traces", false), ("http:///v1/traces", false),
    ("http://:4318/x", false), ("http://c.example/a b", false), ("http://c.example/#x", false),
    ("http://c.example?a/b", false), ("http://c.example/\n", false),
    // Ports
    ("http://c.example:1/x", true), ("http://c.example:65535/x", true),
    ("http://c.example:0/x", false), ("http://c.example:65536/x", false),
    ("http://c.example:99999/x", false), ("http://c.example:/x", false),
    ("http://c.example:-1/x", false), ("http://c.example:+80/x", false),
    ("http://c.example:a/x", false), ("http://c.example:80:80/x", false),
    ("http://c.example:99999999999999999999/x", false), ("http://c.example:8 0/x", false),
    // Hosts
    ("http://otel_collector:4318/x", true), ("http://1.2.3.4/x", true), ("http://1.2.3/x", false),
    ("http://1.2.3.400/x", false), ("http://[::1]/x", true), ("http://[::/x", false),
    ("http://::1]/x", false), ("http://[]/x", false), ("http://[::1]a/x", false),
    ("http://[1.2.3.4]/x", false), ("http://[zz]/x", false), ("http://[fe80::1%25eth0]/x", false),
    ("http://[::1]:/x", false), ("http://::1/x", false), ("http://a%00b/x", false),
    ("http://a%2fb/x", false), ("http://%61/x", false), ("http://a\\b/x", false),
    ("http://a|b/x", false), ("http://a,b/x", false), ("http://<a>/x", false),
    ("http://ä.example/x", false), ("http://./x", false), ("http://a;b/x", false),
    // The rest
    ("HTTP://c.example/x", false), ("http:/c.example/x", false), ("http:c.example/x", false),
    ("http:\\\\c.example/x", false), (" http://c.example/x", false), ("local:///x", false),
    ("http://c.example/x ", false), ("http://c.example/\u{7f}", false),
    ("http://c.example/\0", false), ("http://@c.example/x", false), ("http://:@c.example/x", false),
    ("http://user@c.example/x", false), ("http://c.example#/x", false),
    ("http://c.example/x#", false), ("http://c.example/a@b:c", true),
    ("http://c.example/" + String(repeating: "x", count: 3_000), false), ("http://", false),
    ("http", false), ("/v1/traces", false), ("//c.example/x", false),
  ])
  func `the collector is a URL with a path, without user and fragment`(
    text: String, isAllowed: Bool
  ) throws {
    var configuration = Configuration()
    func set() throws { try configuration.apply(option: "tracing.endpoint", value: text) }
    if isAllowed {
      try set()
      #expect(configuration.tracing.endpoint == text)
    } else {
      #expect(throws: ConfigurationError.self) { try set() }
    }
  }

  @Test func `header fields are literal or refer to secrets`() throws {
    var configuration = Configuration()
    try configuration.apply(
      option: "tracing.headers", value: "X-Key=env:KEY,X-Tenant=one,Authorization=file:/run/a")
    #expect(
      configuration.tracing.headers == [
        "X-Key": .environment("KEY"), "X-Tenant": .literal("one"), "Authorization": .file("/run/a"),
      ])
    let literal = try #require(Configuration.key("tracing.headers")).literal(in: configuration)
    #expect(
      literal
        == "{ \"Authorization\": \"file:/run/a\", \"X-Key\": \"env:KEY\", \"X-Tenant\": \"one\" }")
  }

  @Test(arguments: [
    "Content-Type=secret", "content-length=secret", "Host=secret", "a b=secret", "=secret",
    "X=file:secret", "X=env:", "{ \"X\": \"secret\\r\\nY: 1\" }", "X",
  ])
  func `a field that cannot be sent is refused without its value`(text: String) throws {
    var configuration = Configuration()
    let error = try #require(throws: ConfigurationError.self) {
      try configuration.apply(option: "tracing.headers", value: text)
    }
    #expect(error.problems.joined().contains("tracing.headers"))
    #expect(!error.problems.joined().contains("secret"))
  }
}
