// ServerAnswerTests: parsing of the server's answers.

import TestSupport
import Testing

@testable import Commanding

@Suite(.onOwnThreads) struct ServerAnswerTests {
  private func answer(_ text: String, isWhole: Bool = false) -> ServerAnswer? {
    ServerAnswer(Array(text.utf8), isWhole: isWhole)
  }

  @Test func `a response is complete with the last byte of its content length, not before`() {
    let text = "HTTP/1.1 202 Accepted\r\nX: y\r\ncontent-LENGTH: 5\r\n\r\nabcde"
    for length in 0..<text.utf8.count {
      #expect(ServerAnswer(Array(text.utf8.prefix(length)), isWhole: true) == nil)
    }
    #expect(answer(text)?.status == 202)
    #expect(answer(text + "more")?.body == Array("abcde".utf8))
  }

  @Test func `interim responses are skipped`() {
    let interim = "HTTP/1.1 100 Continue\r\n\r\n"
    #expect(answer(interim) == nil)
    #expect(answer(interim + "HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n")?.status == 204)
  }

  @Test func `without a content length, the body ends with the connection`() {
    let text = "HTTP/1.0 200 OK\r\n\r\nabc"
    #expect(answer(text) == nil)
    #expect(answer(text, isWhole: true)?.body == Array("abc".utf8))
  }

  @Test(arguments: [
    "", "\r\n\r\n", "SSH-2.0-OpenSSH\r\n\r\n", "HTTP/1.1\r\n\r\n", "HTTP/1.1 OK 200\r\n\r\n",
    "HTTP/2 200 OK\r\n\r\n",
  ])
  func `malformed responses are rejected`(text: String) {
    #expect(answer(text, isWhole: true) == nil)
  }
}
