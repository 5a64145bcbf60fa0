// WrongRequest: malformed request texts, grouped by their fault.

import Testing

/// Text that is no request, and what it is answered.
struct WrongRequest: CustomTestStringConvertible {
  let name: String
  let text: String
  var status = 400

  init(_ name: String, _ text: String, _ status: Int = 400) {
    (self.name, self.text, self.status) = (name, text, status)
  }

  var testDescription: String { name }

  private static let host = "Host: t\r\n"
  private static func get(_ fields: String) -> String { "GET /stats HTTP/1.1\r\n\(fields)\r\n" }
  private static func post(_ fields: String, _ body: String = "") -> String {
    "POST /stats HTTP/1.1\r\n\(host)\(fields)\r\n\(body)"
  }
  private static func chunked(_ body: String) -> String {
    post("Transfer-Encoding: chunked\r\n", body)
  }

  static let all: [WrongRequest] = lengths + codings + chunks + fields + lines + sizes

  static let lengths = [
    WrongRequest("two lengths", post("Content-Length: 3\r\nContent-Length: 4\r\n", "abcd")),
    WrongRequest("one length twice", post("Content-Length: 3\r\nContent-Length: 3\r\n", "abc")),
    WrongRequest("a list of lengths", post("Content-Length: 3, 3\r\n", "abc")),
    WrongRequest("a length with a plus", post("Content-Length: +5\r\n", "abcde")),
    WrongRequest("a negative length", post("Content-Length: -1\r\n")),
    WrongRequest("an empty length", post("Content-Length: \r\n")),
    WrongRequest("a hexadecimal length", post("Content-Length: 0x5\r\n", "abcde")),
    WrongRequest("a length with a fraction", post("Content-Length: 5.0\r\n", "abcde")),
    WrongRequest("a length of two numbers", post("Content-Length: 1 0\r\n", "a")),
    WrongRequest("a length beyond 64 bits", post("Content-Length: 18446744073709551617\r\n", "a")),
  ]

  static let codings = [
    WrongRequest(
      "a coding beside a length",
      post("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n")),
    WrongRequest(
      "a length beside a coding",
      post("transfer-encoding: chunked\r\nCONTENT-LENGTH: 5\r\n", "0\r\n\r\n")),
    WrongRequest("the identity coding", post("Transfer-Encoding: identity\r\n")),
    WrongRequest("an unknown coding", post("Transfer-Encoding: gzip\r\n")),
    WrongRequest("two codings", post("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n")),
    WrongRequest("a coding that begins well", post("Transfer-Encoding: chunkedx\r\n")),
    WrongRequest("a coding that ends early", post("Transfer-Encoding: chunke\r\n")),
    WrongRequest("an empty coding", post("Transfer-Encoding:\r\n")),
    WrongRequest("a control character in a coding", post("Transfer-Encoding: \u{b}chunked\r\n")),
    WrongRequest(
      "two fields of codings",
      post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n")),
    WrongRequest(
      "a coding in HTTP/1.0",
      "POST /stats HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
  ]

  static let chunks = [
    WrongRequest("a chunk without a size", chunked("\r\nabc\r\n0\r\n\r\n")),
    WrongRequest("a chunk's size in no digits", chunked("xyz\r\nabc\r\n0\r\n\r\n")),
    WrongRequest("a negative chunk", chunked("-3\r\nabc\r\n0\r\n\r\n")),
    WrongRequest("a chunk's size with a prefix", chunked("0x3\r\nabc\r\n0\r\n\r\n")),
    WrongRequest("a chunk beyond 64 bits", chunked("fffffffffffffffff\r\nabc")),
    WrongRequest("a chunk that is longer", chunked("3\r\nabcd\r\n0\r\n\r\n")),
    WrongRequest("a chunk's size ended by a bare LF", chunked("3\nabc\r\n0\r\n\r\n")),
    WrongRequest("a chunk ended by a bare LF", chunked("3\r\nabc\n0\r\n\r\n")),
    WrongRequest("a blank behind a chunk's size", chunked("3 \r\nabc\r\n0\r\n\r\n")),
    WrongRequest("a NUL in an extension", chunked("3;a\0\r\nabc\r\n0\r\n\r\n")),
    WrongRequest(
      "an endless extension",
      chunked("3;" + String(repeating: "x", count: 300) + "\r\nabc\r\n0\r\n\r\n")),
    WrongRequest("a length in a trailer", chunked("0\r\nContent-Length: 5\r\n\r\n")),
  ]

  static let fields = [
    WrongRequest("no host", get("")),
    WrongRequest("two hosts", get(host + "Host: t\r\n")),
    WrongRequest("two hosts that differ", get(host + "HOST: other\r\n")),
    WrongRequest("a host that is a list", get("Host: a, b\r\n")),
    WrongRequest("a host with a path", get("Host: a/b\r\n")),
    WrongRequest("a host with user information", get("Host: u@a\r\n")),
    WrongRequest("a folded line", get(host + "A: b\r\n c\r\n")),
    WrongRequest("a folded first line", get(" A: b\r\n" + host)),
    WrongRequest("a line folded by a tab", get(host + "A: b\r\n\tc\r\n")),
    WrongRequest("a blank before the colon", get(host + "Content-Length : 0\r\n")),
    WrongRequest("a tab before the colon", get(host + "A\t: b\r\n")),
    WrongRequest("a name with a blank", get(host + "A b: c\r\n")),
    WrongRequest("an empty name", get(host + ": c\r\n")),
    WrongRequest("a line without a colon", get(host + "abc\r\n")),
    WrongRequest("a name in parentheses", get(host + "(a): c\r\n")),
    WrongRequest("a name outside ASCII", get(host + "\u{e9}: c\r\n")),
    WrongRequest("a NUL in a value", get(host + "A: b\0c\r\n")),
    WrongRequest("a NUL in a name", get(host + "A\0b: c\r\n")),
    WrongRequest("a hidden field behind NULs", get(host + "A: b\0\0Content-Length: 5\r\n")),
    WrongRequest("a control character in a value", get(host + "A: \u{1}\r\n")),
    WrongRequest("a bare CR in a value", get(host + "A: b\rX: y\r\n")),
    WrongRequest("a bare LF behind a field", get("Host: t\nA: b\r\n")),
    WrongRequest("a bare LF at the end", "GET /stats HTTP/1.1\r\n\(host)\n"),
  ]

  static let lines = [
    WrongRequest("HTTP/0.9", "GET /stats\r\n\r\n"),
    WrongRequest("a method alone", "GET\r\n\r\n"),
    WrongRequest("the preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    WrongRequest("HTTP/2", "GET /stats HTTP/2.0\r\n\(host)\r\n", 505),
    WrongRequest("HTTP/9", "GET /stats HTTP/9.9\r\n\(host)\r\n", 505),
    WrongRequest("a version in small letters", "GET /stats http/1.1\r\n\(host)\r\n"),
    WrongRequest("a version with two digits", "GET /stats HTTP/1.10\r\n\(host)\r\n"),
    WrongRequest("another protocol", "GET /stats RTSP/1.0\r\n\(host)\r\n"),
    WrongRequest("the beginning of TLS", "\u{16}\u{3}\u{1}\u{2}\0\u{1}\0\u{1}\u{fc}\u{3}\u{3}"),
    WrongRequest("NULs", "\0\0\0\0\r\n\r\n"),
    WrongRequest("a blank in the target", "GET /a b HTTP/1.1\r\n\(host)\r\n"),
    WrongRequest("two blanks", "GET  /stats HTTP/1.1\r\n\(host)\r\n"),
    WrongRequest("a tab between the parts", "GET\t/stats HTTP/1.1\r\n\(host)\r\n"),
    WrongRequest("a NUL in the target", "GET /stats\0evil HTTP/1.1\r\n\(host)\r\n"),
    WrongRequest("a target that is no path", "GET stats HTTP/1.1\r\n\(host)\r\n"),
    WrongRequest("an asterisk to GET", "GET * HTTP/1.1\r\n\(host)\r\n"),
    WrongRequest("a target with a host alone", "CONNECT example.org:443 HTTP/1.1\r\n\(host)\r\n"),
    WrongRequest("a line ended by a bare LF", "GET /stats HTTP/1.1\n\(host)\r\n"),
    WrongRequest("a line ended by a bare CR", "GET /stats HTTP/1.1\r\(host)\r\n"),
    WrongRequest("a method with a colon", "G:T /stats HTTP/1.1\r\n\(host)\r\n"),
    WrongRequest("a folded request line", " GET /stats HTTP/1.1\r\n\(host)\r\n"),
  ]

  static let sizes = [
    WrongRequest("an endless method", String(repeating: "A", count: 20_000)),
    WrongRequest(
      "a long target", "GET /" + String(repeating: "x", count: 20_000) + " HTTP/1.1\r\n\(host)\r\n",
      414),
    WrongRequest(
      "225 parameters",
      "GET /image?" + String(repeating: "a=b&", count: 225) + " HTTP/1.1\r\n\(host)\r\n", 414),
    WrongRequest(
      "a long field", get(host + "A: " + String(repeating: "x", count: 20_000) + "\r\n"), 431),
    WrongRequest(
      "a head near 16 KiB", get(host + "A: " + String(repeating: "x", count: 16_200) + "\r\n"), 431),
    WrongRequest(
      "many cookies", get(host + "Cookie: " + String(repeating: "a=b; ", count: 220) + "\r\n"), 431),
    WrongRequest(
      "cookies without a value",
      get(host + "cookie:" + String(repeating: ";,", count: 110) + "\r\n"),
      431),
    WrongRequest(
      "a long cookie", get(host + "COOKIE: a=" + String(repeating: "x", count: 8_000) + "\r\n"), 431
    ),
    WrongRequest("many fields", get(host + String(repeating: "A: b\r\n", count: 1_000)), 431),
    WrongRequest(
      "many fields in a trailer", chunked("0\r\n" + String(repeating: "A: b\r\n", count: 1_000)),
      431),
  ]
}
