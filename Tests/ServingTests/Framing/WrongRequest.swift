// WrongRequest: malformed request texts, grouped by their fault.

import Testing

/// A malformed request and the status of its response.
struct WrongRequest: CustomTestStringConvertible {
  let name: String
  let text: String
  var status = 400

  init(_ name: String, text: String, status: Int = 400) {
    self.name = name
    self.text = text
    self.status = status
  }

  var testDescription: String { name }

  private static let host = "Host: t\r\n"
  private static func get(_ fields: String) -> String { "GET /stats HTTP/1.1\r\n\(fields)\r\n" }
  private static func post(_ fields: String, body: String = "") -> String {
    "POST /stats HTTP/1.1\r\n\(host)\(fields)\r\n\(body)"
  }
  private static func chunked(_ body: String) -> String {
    post("Transfer-Encoding: chunked\r\n", body: body)
  }

  static let all: [WrongRequest] = lengths + codings + chunks + fields + lines + sizes

  static let lengths = [
    WrongRequest(
      "two lengths", text: post("Content-Length: 3\r\nContent-Length: 4\r\n", body: "abcd")),
    WrongRequest(
      "one length twice", text: post("Content-Length: 3\r\nContent-Length: 3\r\n", body: "abc")),
    WrongRequest("a list of lengths", text: post("Content-Length: 3, 3\r\n", body: "abc")),
    WrongRequest("a length with a plus", text: post("Content-Length: +5\r\n", body: "abcde")),
    WrongRequest("a negative length", text: post("Content-Length: -1\r\n")),
    WrongRequest("a blank behind a length", text: post("Content-Length: 4 \r\n", body: "abcd")),
    WrongRequest("a tab behind a length", text: post("content-length:4\t\r\n", body: "abcd")),
    WrongRequest("an empty length", text: post("Content-Length: \r\n")),
    WrongRequest("a hexadecimal length", text: post("Content-Length: 0x5\r\n", body: "abcde")),
    WrongRequest("a length with a fraction", text: post("Content-Length: 5.0\r\n", body: "abcde")),
    WrongRequest("a length of two numbers", text: post("Content-Length: 1 0\r\n", body: "a")),
    WrongRequest(
      "a length beyond 64 bits", text: post("Content-Length: 18446744073709551617\r\n", body: "a")),
  ]

  static let codings = [
    WrongRequest(
      "a coding beside a length",
      text: post("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", body: "0\r\n\r\n")),
    WrongRequest(
      "a length beside a coding",
      text: post("transfer-encoding: chunked\r\nCONTENT-LENGTH: 5\r\n", body: "0\r\n\r\n")),
    WrongRequest(
      "a blank behind a coding",
      text: post("Transfer-Encoding: chunked \r\n", body: "0\r\n\r\n")),
    WrongRequest(
      "a tab behind a coding",
      text: post("Transfer-Encoding: chunked \t\r\n", body: "0\r\n\r\n")),
    WrongRequest("the identity coding", text: post("Transfer-Encoding: identity\r\n")),
    WrongRequest("an unknown coding", text: post("Transfer-Encoding: gzip\r\n")),
    WrongRequest(
      "two codings", text: post("Transfer-Encoding: gzip, chunked\r\n", body: "0\r\n\r\n")),
    WrongRequest("a coding that begins well", text: post("Transfer-Encoding: chunkedx\r\n")),
    WrongRequest("a coding that ends early", text: post("Transfer-Encoding: chunke\r\n")),
    WrongRequest("an empty coding", text: post("Transfer-Encoding:\r\n")),
    WrongRequest(
      "a control character in a coding", text: post("Transfer-Encoding: \u{b}chunked\r\n")),
    WrongRequest(
      "two fields of codings",
      text: post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", body: "0\r\n\r\n")),
    WrongRequest(
      "a coding in HTTP/1.0",
      text: "POST /stats HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
  ]

  static let chunks = [
    WrongRequest("a chunk without a size", text: chunked("\r\nabc\r\n0\r\n\r\n")),
    WrongRequest("a chunk's size in no digits", text: chunked("xyz\r\nabc\r\n0\r\n\r\n")),
    WrongRequest("a negative chunk", text: chunked("-3\r\nabc\r\n0\r\n\r\n")),
    WrongRequest("a chunk's size with a prefix", text: chunked("0x3\r\nabc\r\n0\r\n\r\n")),
    WrongRequest("a chunk beyond 64 bits", text: chunked("fffffffffffffffff\r\nabc")),
    WrongRequest("a chunk that is longer", text: chunked("3\r\nabcd\r\n0\r\n\r\n")),
    WrongRequest("a chunk's size ended by a bare LF", text: chunked("3\nabc\r\n0\r\n\r\n")),
    WrongRequest("a chunk ended by a bare LF", text: chunked("3\r\nabc\n0\r\n\r\n")),
    WrongRequest("a blank behind a chunk's size", text: chunked("3 \r\nabc\r\n0\r\n\r\n")),
    WrongRequest("a chunk with an extension", text: chunked("3;a=b\r\nabc\r\n0\r\n\r\n")),
    WrongRequest("a length in a trailer", text: chunked("0\r\nContent-Length: 5\r\n\r\n")),
  ]

  static let fields = [
    WrongRequest("no host", text: get("")),
    WrongRequest("two hosts", text: get(host + "Host: t\r\n")),
    WrongRequest("two hosts that differ", text: get(host + "HOST: other\r\n")),
    WrongRequest("a host that is a list", text: get("Host: a, b\r\n")),
    WrongRequest("a host with a path", text: get("Host: a/b\r\n")),
    WrongRequest("a host with user information", text: get("Host: u@a\r\n")),
    WrongRequest("a folded line", text: get(host + "A: b\r\n c\r\n")),
    WrongRequest("a folded first line", text: get(" A: b\r\n" + host)),
    WrongRequest("a line folded by a tab", text: get(host + "A: b\r\n\tc\r\n")),
    WrongRequest("a blank before the colon", text: get(host + "Content-Length : 0\r\n")),
    WrongRequest("a tab before the colon", text: get(host + "A\t: b\r\n")),
    WrongRequest("a name with a blank", text: get(host + "A b: c\r\n")),
    WrongRequest("an empty name", text: get(host + ": c\r\n")),
    WrongRequest("a line without a colon", text: get(host + "abc\r\n")),
    WrongRequest("a name in parentheses", text: get(host + "(a): c\r\n")),
    WrongRequest("a name outside ASCII", text: get(host + "\u{e9}: c\r\n")),
    WrongRequest("a NUL in a value", text: get(host + "A: b\0c\r\n")),
    WrongRequest("a NUL in a name", text: get(host + "A\0b: c\r\n")),
    WrongRequest("a hidden field behind NULs", text: get(host + "A: b\0\0Content-Length: 5\r\n")),
    WrongRequest("a control character in a value", text: get(host + "A: \u{1}\r\n")),
    WrongRequest("a bare CR in a value", text: get(host + "A: b\rX: y\r\n")),
    WrongRequest("a bare LF behind a field", text: get("Host: t\nA: b\r\n")),
    WrongRequest("a bare LF at the end", text: "GET /stats HTTP/1.1\r\n\(host)\n"),
  ]

  static let lines = [
    WrongRequest("HTTP/0.9", text: "GET /stats\r\n\r\n"),
    WrongRequest("a method alone", text: "GET\r\n\r\n"),
    WrongRequest("the preface of HTTP/2", text: "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    WrongRequest("HTTP/2", text: "GET /stats HTTP/2.0\r\n\(host)\r\n", status: 505),
    WrongRequest("HTTP/9", text: "GET /stats HTTP/9.9\r\n\(host)\r\n", status: 505),
    WrongRequest("a version in small letters", text: "GET /stats http/1.1\r\n\(host)\r\n"),
    WrongRequest("a version with two digits", text: "GET /stats HTTP/1.10\r\n\(host)\r\n"),
    WrongRequest("another protocol", text: "GET /stats RTSP/1.0\r\n\(host)\r\n"),
    WrongRequest(
      "the beginning of TLS", text: "\u{16}\u{3}\u{1}\u{2}\0\u{1}\0\u{1}\u{fc}\u{3}\u{3}"),
    WrongRequest("NULs", text: "\0\0\0\0\r\n\r\n"),
    WrongRequest("a blank in the target", text: "GET /a b HTTP/1.1\r\n\(host)\r\n"),
    WrongRequest("two blanks", text: "GET  /stats HTTP/1.1\r\n\(host)\r\n"),
    WrongRequest("a tab between the parts", text: "GET\t/stats HTTP/1.1\r\n\(host)\r\n"),
    WrongRequest("a NUL in the target", text: "GET /stats\0evil HTTP/1.1\r\n\(host)\r\n"),
    WrongRequest("a target that is no path", text: "GET stats HTTP/1.1\r\n\(host)\r\n"),
    WrongRequest("an asterisk to GET", text: "GET * HTTP/1.1\r\n\(host)\r\n"),
    WrongRequest(
      "a target with a host alone", text: "CONNECT example.org:443 HTTP/1.1\r\n\(host)\r\n"),
    WrongRequest("a line ended by a bare LF", text: "GET /stats HTTP/1.1\n\(host)\r\n"),
    WrongRequest("a line ended by a bare CR", text: "GET /stats HTTP/1.1\r\(host)\r\n"),
    WrongRequest("a method with a colon", text: "G:T /stats HTTP/1.1\r\n\(host)\r\n"),
    WrongRequest("a folded request line", text: " GET /stats HTTP/1.1\r\n\(host)\r\n"),
  ]

  static let sizes = [
    WrongRequest("an endless method", text: String(repeating: "A", count: 20_000)),
    WrongRequest(
      "a long target",
      text: "GET /" + String(repeating: "x", count: 20_000) + " HTTP/1.1\r\n\(host)\r\n",
      status: 414),
    WrongRequest(
      "225 parameters",
      text: "GET /image?" + String(repeating: "a=b&", count: 225) + " HTTP/1.1\r\n\(host)\r\n",
      status: 414),
    WrongRequest(
      "a long field", text: get(host + "A: " + String(repeating: "x", count: 20_000) + "\r\n"),
      status: 431),
    WrongRequest(
      "a head near 16 KiB",
      text: get(host + "A: " + String(repeating: "x", count: 16_200) + "\r\n"), status: 431),
    WrongRequest(
      "many cookies",
      text: get(host + "Cookie: " + String(repeating: "a=b; ", count: 220) + "\r\n"), status: 431),
    WrongRequest(
      "cookies without a value",
      text: get(host + "cookie:" + String(repeating: ";,", count: 110) + "\r\n"),
      status: 431),
    WrongRequest(
      "a long cookie",
      text: get(host + "COOKIE: a=" + String(repeating: "x", count: 8_000) + "\r\n"), status: 431
    ),
    WrongRequest(
      "many fields", text: get(host + String(repeating: "A: b\r\n", count: 1_000)), status: 431),
    WrongRequest(
      "many fields in a trailer",
      text: chunked("0\r\n" + String(repeating: "A: b\r\n", count: 1_000)),
      status: 431),
  ]
}
