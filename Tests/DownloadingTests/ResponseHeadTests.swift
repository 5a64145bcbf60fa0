// Tests of ResponseHead: lines in, values out.

import Model
import Testing

@testable import Downloading

struct ResponseHeadTests {
  private func receive(_ lines: [String], limit: Int = 65_536) -> (
    head: ResponseHead, events: [ResponseHead.Event]
  ) {
    var head = ResponseHead(limit: limit)
    let events = lines.map { line in
      Array((line + "\r\n").utf8).withUnsafeBytes { head.receive($0) }
    }
    return (head, events)
  }

  @Test func `a head is whole at its empty line`() {
    let (head, events) = receive(["HTTP/2 200", "Content-Length: 12", ""])
    #expect(events == [.more, .more, .complete])
    #expect(head.isComplete)
    #expect(head.origin.status == 200)
    #expect(head.contentLength == 12)
  }

  @Test func `names are of any case, values without the space around them`() {
    let (head, _) = receive(["HTTP/1.1 200 OK", "eTaG:\t \"x y\" \t", "CONTENT-TYPE:image/png", ""])
    #expect(head.origin.etag == "\"x y\"")
    #expect(head.origin.contentType == "image/png")
  }

  @Test func `what is no header is passed over`() {
    let (head, events) = receive([
      "HTTP/1.1 200 OK", "no colon", " ETag: folded", "ETag:", "ETag: a\u{7}b", "ETag: \"good\"",
      "Content-Length: 1x", "Content-Length: -1", "",
    ])
    #expect(head.origin.etag == "\"good\"")
    #expect(head.contentLength == nil)
    #expect(events.last == .complete)
  }

  @Test func `a length beyond all numbers is the greatest`() {
    let (head, _) = receive(["HTTP/1.1 200 OK", "Content-Length: 99999999999999999999999", ""])
    #expect(head.contentLength == .max)
  }

  @Test func `interim answers are forgotten, trailers ignored, and both are counted`() {
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

  @Test func `a status line without a number has status 0`() {
    for line in ["HTTP/1.1", "HTTP/1.1 abc", "ICY 200x OK"] {
      #expect(receive([line, ""]).head.origin.status == 0)
    }
  }
}
