// ReplyParserTests: replies as values, and what a server may not send.

import TestSupport
import Testing

@testable import Sharing

@Suite struct ReplyParserTests {
  private func parse(_ text: String, limit: Int = 4_096, at once: Bool = true) throws
    -> [RedisReply]
  {
    var parser = try ReplyParser(limit: limit)
    var replies: [RedisReply] = []
    for piece in once ? [Array(text.utf8)] : text.utf8.map({ [$0] }) {
      try parser.feed(piece, count: piece.count)
      while let reply = try parser.next() { replies.append(reply) }
    }
    return replies
  }

  @Test(arguments: [true, false]) func `each kind of reply is read, whole or byte by byte`(
    once: Bool
  ) throws {
    let text =
      "+OK\r\n:-7\r\n$3\r\na\0b\r\n$-1\r\n*-1\r\n*2\r\n$1\r\nx\r\n*1\r\n:1\r\n-OOM no\u{1b}room\r\n"
    #expect(
      try parse(text, at: once) == [
        .status("OK"), .integer(-7), .bytes([97, 0, 98]), .none, .none,
        .list([.bytes([120]), .list([.integer(1)])]), .error(RedisError("OOM no?room".utf8)),
      ])
  }

  @Test(arguments: [
    "HTTP/1.1 400 Bad Request\r\n\r\n", "$99999999999999999999\r\n", "*-2\r\n", "*1000000000\r\n",
    "*65537\r\n", ":12x\r\n", "*9999999999999\r\n", "$-2\r\n", "\0\0\0\0",
    "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n",
  ]) func `bytes that are no reply are an error`(text: String) throws {
    #expect(throws: RedisError.self) { try parse(text) }
  }

  @Test func `a reply that exceeds its bound is an error before its end`() throws {
    #expect(throws: RedisError.self) {
      try parse("$1000000000\r\n" + String(repeating: "x", count: 5_000))
    }
    #expect(try parse("$1000000000\r\n" + String(repeating: "x", count: 1_000)) == [])
    // Elements that are complete count until the whole reply is.
    let element = "$1000\r\n" + String(repeating: "x", count: 1_000) + "\r\n"
    #expect(throws: RedisError.self) {
      try parse("*10\r\n" + String(repeating: element, count: 5))
    }
    // Replies have the bound each.
    #expect(try parse(String(repeating: element, count: 5)).count == 5)
    #expect(try parse(String(repeating: element, count: 5), at: false).count == 5)
  }

  @Test func `nested lists share one bound`() throws {
    let nested = "*60000\r\n*60000\r\n"
    #expect(throws: RedisError.self) { try parse(nested) }
    // The bound is that of one reply.
    #expect(try parse("*1\r\n:1\r\n*1\r\n:1\r\n").count == 2)
  }
}
