// ResponseHeadTests: tests of response fields: file names, densities, unsafe values.

import Core
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
  func `a file name is offered without unsafe characters`(url: String, expected: String) throws {
    let source = try SourceURL(parsing: url)
    #expect(ContentDisposition.value(source, format: .jpeg) == expected)
  }

  @Test(
    arguments: [
      0x061c, 0x200b, 0x200e, 0x200f, 0x2028, 0x2029, 0x202a, 0x202b, 0x202c, 0x202d, 0x202e,
      0x2060,
      0x2066, 0x2067, 0x2068, 0x2069, 0x85, 0xad, 0xfeff, 0xfff9, 0xe0001,
    ] as [UInt32])
  func `a file name cannot turn its text around or hide it with control characters`(
    code: UInt32
  ) throws {
    // Given `photo<U+202E>gpj.exe`, which shows as `photoexe.jpg`
    let control = String(try #require(UnicodeScalar(code)))
    for name in [control + "gpj", "photo" + control + "gpj", "photo" + control] {
      let path = PercentEncoding.encode(name)
      for url in ["https://h/\(path).exe", "local:///\(path).exe"] {
        // When
        let field = ContentDisposition.value(
          try SourceURL(parsing: url), format: .jpeg)
        // Then
        let expected = name.unicodeScalars.filter { $0.value != code }.map(String.init).joined()
        #expect(field == "inline; filename=\"\(expected).jpg\"", "\(url)")
      }
    }
  }

  @Test func `a file name keeps the joiners of Persian words and of emoji`() throws {
    for name in ["\u{645}\u{6cc}\u{200c}\u{62e}", "\u{1f468}\u{200d}\u{1f469}"] {
      let path = PercentEncoding.encode(name)
      let source = try SourceURL(parsing: "https://h/\(path).png")
      let field = ContentDisposition.value(source, format: .jpeg)
      #expect(field.hasSuffix("filename*=UTF-8''\(path).jpg"))
    }
  }

  @Test func `a file name with many combining marks is truncated`() throws {
    let name = "a" + String(repeating: "%CC%81", count: 1_300)
    let source = try SourceURL(parsing: "https://h/\(name).png")
    #expect(ContentDisposition.value(source, format: .jpeg).utf8.count < 1_500)
  }

  @Test func `a header value with a line break is omitted`() {
    var head = ResponseHead(date: UnixTime(seconds: 0), id: RequestID())
    let before = head.bytes
    head.add("ETag", value: "\"a\"\r\nSet-Cookie: x")
    head.add("ETag", value: "")
    #expect(head.bytes == before)
    head.add("ETag", value: "\"a\"")
    #expect(String(decoding: head.bytes.suffix(11), as: UTF8.self) == "\r\nETag: \"a\"")
  }

  @Test func `densities are written without superfluous digits`() {
    #expect(ResponseHead.decimal(2) == "2")
    #expect(ResponseHead.decimal(0.5) == "0.5")
    #expect(ResponseHead.decimal(1.0 / 3) == "0.333")
    #expect(ResponseHead.decimal(1.05) == "1.05")
    // A density is never 0, however small.
    #expect(ResponseHead.decimal(0.000_1) == "0.001")
  }

  @Test(arguments: [
    (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"), (.min, "Sat, 01 Jan 0000 00:00:00 GMT"),
    (.max, "Fri, 31 Dec 9999 23:59:59 GMT"),
  ])
  func `validators are sent as tag and date`(seconds: Int, date: String) throws {
    for tag in ["\"0123456789abcdef0123456789abcdef\"", "\"e\""] {
      var info = makeInfo()
      info.etag = EntityTag(tag)
      info.lastModified = UnixTime(seconds: seconds)
      var head = ResponseHead()
      head.addValidators(of: info)
      #expect(
        String(decoding: head.bytes, as: UTF8.self) == "\r\nETag: \(tag)\r\nLast-Modified: \(date)")
    }
  }
}
