// OriginResponseParserTests: tests of OriginResponseParser.

import Core
import TestSupport
import Testing

@testable import Downloading

@Suite(.onOwnThreads) struct ResponseHeadTests {
  private func receive(_ lines: [String], limit: Int = 65_536) -> (
    head: OriginResponseParser, events: [OriginResponseParser.Event]
  ) {
    var head = OriginResponseParser(limit: limit)
    let events = lines.map { line in
      Array((line + "\r\n").utf8).withUnsafeBytes { head.receive($0) }
    }
    return (head, events)
  }

  @Test(arguments: [
    ("201 Created", "X: y", 200), ("206 Partial", "Content-Range: bytes 0-11/12", 200),
    ("206 Partial", "Content-Range: Bytes 0-8/9", 206),
    ("206 Partial", "Content-Range: bytes 0-11/13", 206),
    ("206 Partial", "Content-Range: bytes 1-12/12", 206),
    ("206 Partial", "Content-Range: bytes 0-11/*", 206),
    ("206 Partial", "Content-Range: bytes 0-9223372036854775807/9223372036854775807", 206),
    ("206 Partial", "X: y", 206),
  ])
  func `a status that comes with the whole image counts as 200`(
    status: String, field: String, expected: Int
  ) {
    let (head, _) = receive(["HTTP/1.1 \(status)", "Content-Length: 12", field, ""])
    #expect(head.origin.status == expected)
  }

  @Test func `a Location in Latin-1 keeps its bytes, and one in UTF-8 its characters`() {
    for (bytes, expected) in [([0xe4], "/%E4?b"), ([0xc3, 0xa4], "/ä?b")] as [([UInt8], String)] {
      var head = OriginResponseParser(limit: 1_000)
      for line in [
        Array("HTTP/1.1 302 Found\r\n".utf8),
        Array("Location: /".utf8) + bytes + Array("?b\r\n".utf8),
        Array("\r\n".utf8),
      ] {
        _ = line.withUnsafeBytes { head.receive($0) }
      }
      #expect(head.redirect == expected)
    }
  }

  @Test func `malformed header lines are skipped`() {
    let (head, events) = receive([
      "HTTP/1.1 200 OK", "no colon", " ETag: folded", "ETag:", "ETag: a\u{7}b", "ETag: \"good\"",
      "",
    ])
    #expect(head.origin.etag == "\"good\"")
    #expect(events.last == .complete)
  }

  @Test func `contradictory or malformed lengths are invalid unless they are ignored`() {
    let lengths: [([String], Int?)] = [
      (["5"], 5), (["5", "5"], 5), (["5, 5", "05"], 5), (["5", "6"], nil), (["5,6"], nil),
      (["5,"], nil), (["", "5"], nil), (["5x"], nil), (["-5"], nil), (["5\u{b}"], nil),
      (["99999999999999999999999"], .max),
    ]
    for (values, expected) in lengths {
      let lines = ["HTTP/1.1 200 OK"] + values.map { "Content-Length: \($0)" }
      let (head, _) = receive(lines + [""])
      #expect(head.hasInvalidLength == (expected == nil), "\(values)")
      if let expected { #expect(head.contentLength == expected) }
      let (chunked, _) = receive(lines + ["transfer-encoding: chunked", ""])
      #expect(chunked.contentLength == nil && !chunked.hasInvalidLength)
      // The headers of an interim response are discarded.
      let (next, _) = receive(["HTTP/1.1 103 Early"] + lines.dropFirst() + ["", lines[0], ""])
      #expect(next.contentLength == nil && !next.hasInvalidLength)
    }
  }

  @Test func `Location is used only with a redirect status`() {
    for (status, expected) in [(200, nil), (302, "/a"), (304, nil), (308, "/a"), (404, nil)] {
      let (head, _) = receive(["HTTP/1.1 \(status) X", "Location: /a", "Location: /b", ""])
      #expect(head.redirect == expected)
    }
  }

  @Test func `interim responses and trailers are ignored, but count towards the header limit`() {
    let lines = [
      "HTTP/1.1 103 Early", "ETag: \"early\"", "", "HTTP/1.1 200 OK", "Age: 1", "", "Age: 2",
    ]
    let (head, events) = receive(lines)
    #expect(events == [.more, .more, .more, .more, .more, .complete, .more])
    #expect(head.origin.etag == nil && head.origin.age == "1")
    let size = lines.map { $0.utf8.count + 2 }.reduce(0, +)
    #expect(receive(lines, limit: size).events.last == .more)
    #expect(receive(lines, limit: size - 1).events.last == .tooLarge)
  }

  @Test func `directives for caches of content networks are kept, the more general last`() {
    let all = ["HTTP/1.1 200 OK", "Cache-Control: max-age=1"]
    let surrogate = "Surrogate-Control: content=\"ESI/1.0\", max-age=60+30, no-store-remote"
    for (lines, expected) in [
      ([], nil), (["CDN-Cache-Control:"], nil),
      ([surrogate], "content=\"ESI/1.0\", max-age=60, no-store-remote"),
      (["Surrogate-Control: content=\"ESI/1.0\""], nil), (["CDN-Cache-Control: x, y=1"], nil),
      ([surrogate, "CDN-Cache-Control: x"], "content=\"ESI/1.0\", max-age=60, no-store-remote"),
      (
        [surrogate, "cdn-cache-control: max-age=5", "CDN-Cache-Control: immutable"],
        "max-age=5, immutable"
      ),
    ] as [([String], String?)] {
      let origin = receive(all + lines + [""]).head.origin
      #expect(origin.targetedControl == expected && origin.cacheControl == "max-age=1")
    }
    // A 201 with a lifetime of its own is stored for it.
    #expect(
      receive(["HTTP/1.1 201 Created", "CDN-Cache-Control: max-age=5", ""]).head.origin
        .cacheControl == nil)
  }

  @Test func `a status line without a number has status 0`() {
    for line in ["HTTP/1.1", "HTTP/1.1 abc", "ICY 200x OK"] {
      #expect(receive([line, ""]).head.origin.status == 0)
    }
  }
}
