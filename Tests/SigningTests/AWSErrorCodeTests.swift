// AWSErrorCodeTests: codes in bodies that an object store, or anything in its place, has sent.

import Core
import Testing

@Suite struct AWSErrorCodeTests {
  @Test func `the code of an error is found`() {
    let body = "<?xml version=\"1.0\"?><Error><Code>SlowDown</Code><Message>m</Message></Error>"
    #expect(AWSErrorCode.find(in: Array(body.utf8)) == "SlowDown")
  }

  @Test(
    arguments: [
      "", "<Code>a b</Code>", "<Code></Code>", "<Code>x", "</Code><Code>", "\u{0}",
      "<Code>a\r\nb</Code>", "<Code>\(String(repeating: "x", count: 65))</Code>",
    ])
  func `anything else is no code`(text: String) {
    #expect(AWSErrorCode.find(in: Array(text.utf8)) == nil)
  }

  @Test func `bytes that are no text have no code`() {
    #expect(AWSErrorCode.find(in: [0xff, 0xfe, 0x00]) == nil)
  }
}
