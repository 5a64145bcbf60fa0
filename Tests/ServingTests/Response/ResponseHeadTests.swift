// ResponseHeadTests: tests of response fields: file names, densities, unsafe values.

import Model
import Telemetry
import TestSupport
import Testing

@testable import Serving

@Suite(.onOwnThreads) struct ResponseHeadTests {
  @Test(arguments: [
    ("https://h/a/photo.png", "inline; filename=\"photo.jpg\""),
    ("https://h/", "inline; filename=\"image.jpg\""),
    ("https://h/.hidden", "inline; filename=\".hidden.jpg\""),
    ("https://h/a.b.c?x=y", "inline; filename=\"a.b.jpg\""),
    ("https://h/a%20b.png", "inline; filename=\"a b.jpg\""),
    (
      "https://h/a%22%0D%0Ab%5C%2Fc.png",
      "inline; filename=\"a_bc.jpg\"; filename*=UTF-8''a%22bc.jpg"
    ),
    ("https://h/%C3%A9.png", "inline; filename=\"_.jpg\"; filename*=UTF-8''%C3%A9.jpg"),
    ("https://h/..%2F..", "inline; filename=\"image.jpg\""),
  ])
  func `a file name is offered and cannot do harm`(url: String, expected: String) throws {
    let source = try SourceURL(parsing: url)
    #expect(ContentDisposition.inline(source: source, format: .jpeg) == expected)
  }

  @Test func `a file name is short however many marks its characters have`() throws {
    let name = "a" + String(repeating: "%CC%81", count: 1_300)
    let source = try SourceURL(parsing: "https://h/\(name).png")
    #expect(ContentDisposition.inline(source: source, format: .jpeg).utf8.count < 1_500)
  }

  @Test func `a header value with a line break is left out`() {
    var head = ResponseHead(date: UnixTime(seconds: 0), id: RequestID())
    let before = head.bytes
    head.add("ETag", "\"a\"\r\nSet-Cookie: x")
    head.add("ETag", "")
    #expect(head.bytes == before)
    head.add("ETag", "\"a\"")
    #expect(String(decoding: head.bytes.suffix(11), as: UTF8.self) == "\r\nETag: \"a\"")
  }

  @Test func `densities are written without needless digits`() {
    #expect(ResponseHead.decimal(2) == "2")
    #expect(ResponseHead.decimal(0.5) == "0.5")
    #expect(ResponseHead.decimal(1.0 / 3) == "0.333")
    #expect(ResponseHead.decimal(1.05) == "1.05")
    // A density is never 0, however small.
    #expect(ResponseHead.decimal(0.000_1) == "0.001")
  }
}
