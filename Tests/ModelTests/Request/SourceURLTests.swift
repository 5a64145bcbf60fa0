// SourceURLTests: tests accepted URLs, their canonical form, and densities by file name.

import Testing

@testable import Core

struct SourceURLTests {
  @Test(arguments: [
    ("HTTP://Example.COM", "http://example.com/"),
    ("http://example.com:80/a.jpg", "http://example.com/a.jpg"),
    ("https://example.com:443/a.jpg#top", "https://example.com/a.jpg"),
    ("https://example.com:8443/A.jpg?b=C", "https://example.com:8443/A.jpg?b=C"),
    ("http://example.com?x=1", "http://example.com/?x=1"),
    ("http://[::1]:8080/a", "http://[::1]:8080/a"),
    ("http://example.com/a b.jpg", "http://example.com/a%20b.jpg"),
    ("http://example.com/%C3%BC.jpg", "http://example.com/%C3%BC.jpg"),
    ("http://example.com/ü.jpg", "http://example.com/%C3%BC.jpg"),
    ("local:///a/b.jpg", "local:///a/b.jpg"),
    // What curl 7.88 sends
    ("http://h/a/../b", "http://h/b"), ("http://h/a/./b/.", "http://h/a/b/"),
    ("http://h/../../b?c=../d", "http://h/b?c=../d"), ("http://h/a/..", "http://h/"),
    ("http://h/x//../y", "http://h/x/y"), ("http://h/a/..;x/b", "http://h/a/..;x/b"),
    ("http://h/a/%2e%2e/b", "http://h/a/%2e%2e/b"), ("http://h/...", "http://h/..."),
    ("http://h/.a/..b", "http://h/.a/..b"),
  ])
  func `equivalent URLs have one canonical form`(spelling: String, canonical: String) throws {
    #expect(try SourceURL(parsing: spelling).text == canonical)
  }

  @Test(arguments: [
    "", "a.jpg", "/a.jpg", "//example.com/a.jpg", "ftp://example.com/a.jpg", "file:///etc/passwd",
    "http://", "http:///a.jpg", "http://user@example.com/", "http://user:word@example.com/",
    "http://example.com:0/", "http://example.com:65536/", "http://example.com/\u{0}",
    "http://example.com/\n", "local://host/a.jpg", "local:///", "local:///a.jpg?w=50",
    "local:///a.jpg?", "local:%2F/a.jpg", "local:%2Fa.jpg",
    "javascript:alert(1)",
    "http://example.com:99999999999999999999/a", "http://example.com:a/", "http://example.com:-1/",
    "http://[zz]/", "http://[1.2.3.4]/", "http://[fe80::1%25eth0]/", "http://[::/", "http://[]/",
    "http://[::1]a/", "http://[v1.a]/",
  ])
  func `an unusable URL is refused with a reason`(text: String) {
    #expect {
      try SourceURL(parsing: text)
    } throws: { error in
      guard let error = error as? ImageError, case .invalidURL(_, let reason) = error else {
        return false
      }
      return !reason.isEmpty && error.code == "invalid_url" && error.parameter == "url"
    }
  }

  @Test func `a URL over the maximum length is refused and not repeated in the message`() {
    let text = "http://example.com/" + String(repeating: "a", count: SourceURL.maximumLength)
    #expect {
      try SourceURL(parsing: text)
    } throws: { error in
      (error as? ImageError).map { $0.message.utf8.count < 200 } ?? false
    }
  }

  @Test func `host, port and path are parsed`() throws {
    let plain = try SourceURL(parsing: "http://Example.com/a/b.jpg?c")
    #expect((plain.host, plain.port, plain.path) == ("example.com", 80, "/a/b.jpg"))
    #expect(plain.fileName == "b.jpg")
    let address = try SourceURL(parsing: "https://[FE80::1]:9/")
    #expect((address.host, address.port) == ("fe80::1", 9))
    #expect(address.fileName == "")
  }

  @Test func `the path of a local URL is percent-decoded`() throws {
    #expect(try SourceURL(parsing: "local:///a%20b/c.jpg").path == "/a b/c.jpg")
  }

  @Test(arguments: [
    ("http://a/logo.png", 1), ("http://a/logo@2x.png", 2), ("http://a/logo@3x.png", 3),
    ("http://a/logo%402x.png", 2), ("http://a/logo@2X.PNG", 2), ("http://a/logo@4x.png", 1),
    ("http://a/logo@2x", 1), ("http://a/b.c@2x/logo.png", 1), ("http://a/logo.png?x=@2x.png", 1),
    ("local:///logo@2x.png", 2),
  ])
  func `the density is parsed from the file name`(url: String, density: Int) throws {
    #expect(try SourceURL(parsing: url).density == density)
  }
}
