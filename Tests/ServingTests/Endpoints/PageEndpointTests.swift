// PageEndpointTests: what clients of the page at / see: files, fields, listeners.

import Core
import TestSupport
import Testing

@testable import Serving

@Suite(.onOwnThreads) struct PageEndpointTests {
  /// The paths of the page and its files.
  private static let paths = [
    "/", "/page/page.css", "/page/page.js", "/page/dom.js", "/page/controls.js", "/page/result.js",
    "/page/snippets.js", "/page/figures.js", "/page/operators.js", "/page/parameters.json",
    "/page/documents.js", "/page/http-api.md",
  ]

  private func type(of path: String) -> String {
    if path == "/" { return "text/html; charset=utf-8" }
    if path.hasSuffix(".md") { return "text/plain; charset=utf-8" }
    if path.hasSuffix(".css") { return "text/css; charset=utf-8" }
    return path.hasSuffix(".json") ? "application/json" : "text/javascript; charset=utf-8"
  }

  @Test func `each file has its type, a strict policy and a strong entity tag`() async throws {
    try await withClient { client in
      var tags: Set<String> = []
      for path in Self.paths {
        let answer = try client.get(path)
        #expect(answer.status == 200 && !answer.body.isEmpty, "\(path)")
        #expect(answer["Content-Type"] == type(of: path))
        #expect(answer["Cache-Control"] == "no-cache")
        #expect(answer["X-Content-Type-Options"] == "nosniff")
        #expect(answer["Referrer-Policy"] == "no-referrer")
        let policy = try #require(answer["Content-Security-Policy"])
        #expect(policy.hasPrefix("default-src 'none'; script-src 'self'; style-src 'self'; "))
        #expect(!policy.contains("unsafe") && !policy.contains("*") && !policy.contains("http"))
        for part in ["base-uri", "form-action", "frame-ancestors"] {
          #expect(policy.contains("\(part) 'none'"))
        }
        let etag = try #require(answer["ETag"])
        #expect(etag.hasPrefix("\"") && etag.utf8.count == 34)
        tags.insert(etag)
        // HEAD is GET without the body
        let head = try client.head(path)
        #expect(head.status == 200 && head["ETag"] == etag && head.body.isEmpty)
        #expect(head["Content-Length"] == "\(answer.body.count)")
        // A client that has the file gets no body
        for known in [etag, "\"other\", \(etag)", "W/\(etag)", "*"] {
          let same = try client.get(path, headers: ["If-None-Match": known])
          #expect(same.status == 304 && same.body.isEmpty && same["ETag"] == etag)
          #expect(same["Content-Security-Policy"] == policy)
        }
        for old in ["\"other\"", "nonsense", ""] {
          #expect(try client.get(path, headers: ["If-None-Match": old]).status == 200)
        }
      }
      #expect(tags.count == Self.paths.count)
    }
  }

  @Test(arguments: [true, false])
  func `what browsers and crawlers ask of every server is no error, with or without the page`(
    hasPage: Bool
  ) async throws {
    try await withClient(configure: { $0.page = hasPage }) { client in
      let robots = try client.get("/robots.txt")
      #expect(robots.status == 200 && robots["Content-Type"] == "text/plain; charset=utf-8")
      #expect(String(decoding: robots.body, as: UTF8.self).contains("Allow: /image\n"))
      let icon = try client.get("/favicon.ico")
      #expect(icon.status == 204 && icon.body.isEmpty)
    }
  }

  @Test func `nothing else is below the page, and nothing may be changed`() async throws {
    try await withServer { server in
      let client = try HTTPClient(port: server.port)
      for path in [
        "/page", "/page/", "/page/index", "/page/../etc/passwd", "/page/page.c", "/page/a/page.js",
        "/page/PAGE.JS", "/page/page.js%00", "/index.html", "//", "/page/%2e%2e",
      ] {
        #expect(try HTTPClient(port: server.port).get(path).status == 404, "\(path)")
      }
      for path in ["/", "/page/page.js"] {
        for method in ["POST", "PUT", "DELETE"] {
          let answer = try HTTPClient(port: server.port).request(method, target: path)
          #expect(answer.status == 405 && answer["Allow"] == "GET, HEAD, OPTIONS")
        }
        #expect(try client.request("OPTIONS", target: path).status == 204)
      }
      // A query changes nothing: links may have one
      #expect(try client.get("/?utm_source=x").status == 200)
    }
  }

  @Test func `turned off, there is no page on any listener`() async throws {
    try await withServer {
      $0.page = false
      $0.operatorAddress = ListenAddress("127.0.0.1:0")
    } body: { server in
      for port in [server.port, try #require(server.operatorPort)] {
        let client = try HTTPClient(port: port)
        for path in Self.paths {
          #expect(try client.get(path).status == 404)
          #expect(try client.request("POST", target: path).status == 404)
        }
      }
    }
  }

  @Test func `each listener has the page and says what else it has`() async throws {
    try await withServer {
      $0.operatorAddress = ListenAddress("127.0.0.1:0")
    } body: { server in
      let ports = [server.port, try #require(server.operatorPort)]
      for (port, listener) in zip(
        ports, [#""figures":false,"images":true"#, #""figures":true,"images":false"#])
      {
        let client = try HTTPClient(port: port)
        #expect(try client.get("/").status == 200)
        #expect(try client.get("/page/parameters.json").text.contains(listener))
      }
    }
    try await withClient { client in
      let text = try client.get("/page/parameters.json").text
      #expect(text.contains(#""figures":true,"images":true"#))
    }
  }

  @Test func `the files of the page load nothing from elsewhere and write no markup`() async throws
  {
    try await withClient { client in
      for path in Self.paths where !path.hasSuffix(".json") {
        // The style is in the text that people copy.
        let text = try client.get(path).text.replacing(
          #" style="max-width:100%;height:auto""#, with: "")
        for word in [
          "innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(", "localStorage",
          "sessionStorage", "style=", "src=\"http", "href=\"http", "url(", "@import",
        ] {
          #expect(!text.contains(word), "\(path) has \(word)")
        }
      }
      // Each file that the page names exists
      let html = try client.get("/").text
      #expect(html.contains("page/page.css") && html.contains("page/page.js"))
    }
  }
}
