// RequestTargetTests: tests of parsed request targets.

import Core
import TestSupport
import Testing

@testable import Serving

@Suite(.onOwnThreads) struct RequestTargetTests {
  private func target(_ text: String) -> RequestTarget {
    RequestTarget(raw: Array(text.utf8), rules: RequestRules(ServerConfiguration()))
  }

  @Test func `a target leads to its endpoint in origin form and in absolute form`() {
    #expect(target("/image?url=https://h/a").endpoint is ImageEndpoint)
    #expect(target("/im%61ge?url=https://h/a").key != nil)
    #expect(target("http://any:80/image?url=https://h/a").key != nil)
    #expect(target("/stats").endpoint is StatsEndpoint)
    #expect(target("/").endpoint is PageEndpoint)
    #expect(target("http://any").endpoint == nil)
    for nowhere in ["", "*", "/image/", "/Image", "/image%00", "/%zz", "//image"] {
      #expect(target(nowhere).endpoint == nil, "\(nowhere)")
    }
  }
}
