// FramingTests: tests of the request framing, alone and over sockets.

import Core
import TestSupport
import Testing

@testable import Serving

@Suite(.onOwnThreads) struct FramingTests {
  /// Parses text that arrives in pieces of `size` bytes.
  private func judge(_ text: String, inPiecesOf size: Int) -> (ImageError?, whole: Int) {
    var framing = RequestFraming()
    let bytes = Array(text.unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) })
    for start in stride(from: 0, to: bytes.count, by: size) {
      let piece = Array(bytes[start..<min(start + size, bytes.count)])
      let verdict = piece.withUnsafeBytes { framing.take($0) }
      if case .refused(let fault, _) = verdict { return (fault, framing.wholeRequests) }
    }
    return (nil, framing.wholeRequests)
  }

  @Test(arguments: WrongRequest.all)
  func `a malformed request is refused in pieces of any size`(wrong: WrongRequest) {
    for size in [1, 2, 3, 7, 64, 100_000] {
      // When
      let (fault, whole) = judge(wrong.text, inPiecesOf: size)
      // Then
      #expect(fault?.status == wrong.status, "in pieces of \(size)")
      #expect(whole == 0, "in pieces of \(size)")
    }
  }

  @Test(arguments: [
    ("GET / HTTP/1.1\r\nHost: t\r\n\r\n", 1), ("GET / HTTP/1.0\r\n\r\n", 1),
    ("\r\n\r\nGET / HTTP/1.1\r\nhOST:[::1]:80\t \r\n\r\n\r\n", 1),
    ("GET / HTTP/1.1\r\nHost:\r\n\r\n", 1),
    ("OPTIONS * HTTP/1.1\r\nHost: t\r\n\r\n", 1),
    ("GET http://a.example/x?y HTTP/1.1\r\nHost: a.example\r\n\r\n", 1),
    ("GET /\u{e9}|{}\"<> HTTP/1.7\r\nHost: t\r\nA:\r\nB: \u{e9}\tc\r\n\r\n", 1),
    (
      "POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 3\r\n\r\nabc"
        + "GET / HTTP/1.1\r\nHost: t\r\n\r\n", 2
    ),
    (
      "POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 000\r\n\r\n"
        + "GET / HTTP/1.1\r\nHost: t\r\n\r\n", 2
    ),
    (
      "POST / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: Chunked\r\n\r\n"
        + "a\r\n0123456789\r\nA\r\n0123456789\r\n000\r\nT: u\r\nV:\r\n\r\n"
        + "GET / HTTP/1.1\r\nHost: t\r\n\r\n", 2
    ),
    ("GET / HTTP/1.1\r\nHost: t\r\nContent-Lengthy: x\r\nHostile: \"\r\nX-Host: a b\r\n\r\n", 1),
  ])
  func `a valid request ends at the same byte in pieces of any size`(text: String, count: Int) {
    for size in [1, 2, 3, 7, 64, 100_000] {
      let (fault, whole) = judge(text, inPiecesOf: size)
      #expect(fault == nil && whole == count, "in pieces of \(size)")
    }
  }

  @Test(arguments: WrongRequest.all)
  func `a malformed request gets one JSON error and ends its connection`(wrong: WrongRequest)
    async throws
  {
    try await withServer { server in
      let bytes = Array(wrong.text.unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) })
      for isSplit in [false, true] {
        let client = try HTTPClient(port: server.port)
        // A request before it is answered first; one after it, never.
        if isSplit {
          #expect(try client.get("/nowhere").status == 404)
          try client.send(bytes: Array(bytes.prefix(bytes.count / 2)))
          try? client.send(bytes: Array(bytes.dropFirst(bytes.count / 2)))
        } else {
          try client.send(bytes: Array(HTTPClient.text("GET", target: "/nowhere").utf8) + bytes)
          #expect(try client.readAnswer().status == 404)
        }
        try? client.send(HTTPClient.text("GET", target: "/stats"))
        let answer = try client.readAnswer()
        #expect(answer.status == wrong.status)
        #expect(answer["Connection"] == "close" && answer["Content-Type"] == "application/json")
        #expect(answer["Cache-Control"] == "no-store")
        #expect(answer["Access-Control-Allow-Origin"] == "*")
        #expect(answer.text.hasPrefix("{\"error\":{\"code\":\""))
        let id = try #require(answer["X-Request-ID"])
        #expect(answer.text.contains(id))
        #expect(try client.readToEnd().isEmpty)
      }
      try await eventually { server.figures.active == 0 }
    }
  }

  @Test func `refused connections are closed even if their clients stay`() async throws {
    try await withServer { server in
      let clients = try (0..<20).map { _ in
        let client = try HTTPClient(port: server.port)
        try client.send("BAD\r\n")
        return client
      }
      for client in clients { #expect(try client.readAnswer().status == 400) }
      try await eventually { server.figures.connections == 0 }
      #expect(server.figures.byStatus["400"] == 20)
    }
  }

  @Test func `requests are accepted up to the size limits`() async throws {
    let provider = TestProvider()
    provider.keep(makeVariant(try makeRequest().key))
    try await withServer(provider) { server in
      let client = try HTTPClient(port: server.port)
      for size in stride(from: 11_000, through: 13_400, by: 100) {
        // A header of that size, then many small ones of about the same total.
        let long = "A: " + String(repeating: "x", count: size) + "\r\n"
        let many = String(repeating: "A: b\r\n", count: size / 71)
        for fields in [long, many] {
          let text = "GET \(imageTarget) HTTP/1.1\r\nHost: t\r\n\(fields)\r\n"
          let connection = size < 12_900 ? client : try HTTPClient(port: server.port)
          try connection.send(text)
          let status = try connection.readAnswer().status
          #expect(status == 200 || (status == 431 && size > 12_900), "\(size)")
        }
      }
      // Cookies, which libmicrohttpd splits: small ones and a long one.
      for size in stride(from: 11_000, through: 13_400, by: 100) {
        let many = String(repeating: "a=b;", count: size / (2 * 4 + 64))
        for cookies in [many, "a=" + String(repeating: "x", count: size / 2)] {
          let text = "GET \(imageTarget) HTTP/1.1\r\nHost: t\r\nCookie: \(cookies)\r\n\r\n"
          let connection = try HTTPClient(port: server.port)
          try connection.send(text)
          let status = try connection.readAnswer().status
          #expect(status == 200 || (status == 431 && size > 12_900), "\(size)")
        }
      }
      // A target with many parameters, all unknown.
      let query = (0..<140).map { "p\($0)=v" }.joined(separator: "&")
      #expect(try client.get("/image?\(query)").status == 400)
      let target = "/image?url=https%3A%2F%2Fexample.org%2F" + String(repeating: "x", count: 8_100)
      #expect(try client.get(target).status == 404)
    }
  }

  @Test func `pipelined requests are all answered in order`()
    async throws
  {
    let provider = TestProvider { request throws(ImageError) in
      makeDelivery(makeVariant(request.key, body: Array(request.source.text.utf8)))
    }
    try await withClient(provider) { client in
      let urls = (0..<200).map { "https://example.org/\($0)" }
      var text = ""
      for (index, url) in urls.enumerated() {
        text += HTTPClient.text("GET", target: "/image?url=\(url)")
        if index % 3 == 0 {
          text +=
            "POST /stats HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n"
            + "5\r\nGET /\r\n0\r\nX: y\r\n\r\n"
        }
      }
      try client.send(text)
      for (index, url) in urls.enumerated() {
        #expect(try client.readAnswer().text == url)
        if index % 3 == 0 { #expect(try client.readAnswer().status == 405) }
      }
    }
  }

  @Test func `a request whose bytes did not pass the check is none that was checked`() {
    var framing = RequestFraming()
    func take(_ text: String) {
      Array(text.utf8).withUnsafeBytes { #expect(framing.take($0) == .accepted) }
    }
    // No byte, a part of the head, the head and a part of the body, all of it
    #expect(!framing.hasChecked(requestAfter: 0))
    take("POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n")
    #expect(!framing.hasChecked(requestAfter: 0))
    take("\r\n1")
    #expect(framing.hasChecked(requestAfter: 0))
    take("23")
    #expect(framing.hasChecked(requestAfter: 0))
    #expect(!framing.hasChecked(requestAfter: 1))
    // A pipelined one, and a chunked one
    take(
      "GET /a HTTP/1.1\r\nHost: a\r\n\r\nPOST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    #expect(framing.hasChecked(requestAfter: 1) && framing.hasChecked(requestAfter: 2))
    take("1\r\na\r\n0\r\nA: b")
    #expect(framing.hasChecked(requestAfter: 2))
    take("\r\n\r\n")
    #expect(framing.hasChecked(requestAfter: 2) && !framing.hasChecked(requestAfter: 3))
  }
}
