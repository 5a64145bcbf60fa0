// RequestLoopTests: requests that passed this server are refused; others keep their trail.

import Core
import TestSupport
import Testing

@testable import Serving

@Suite(.onOwnThreads) struct RequestLoopTests {
  @Test(
    arguments: [
      ["CDN-Loop": "me"], ["cdn-loop": "cloudflare; loops=1, ME;x=1"], ["Via": "1.1 me"],
      ["CDN-Loop": "other", "CDN-LOOP": "me"], ["CDN-Loop": String(repeating: "a,", count: 40)],
    ] as [KeyValuePairs<String, String>])
  func `a request that already passed this server is refused`(
    headers: KeyValuePairs<String, String>
  ) async throws {
    let provider = TestProvider()
    try await withClient(provider) {
      $0.id = "me"
      $0.operatorTokens = ["0123456789abcdef"]
    } body: { client in
      for target in [imageTarget, "/info" + imageTarget.dropFirst(6)] {
        let answer = try client.get(target, headers: headers)
        #expect(answer.status == 403 && answer.text.contains("\"forbidden_source\""))
        #expect(answer["Cache-Control"] == "no-store")
      }
      #expect(try client.get("/stats", headers: headers).status == 200)
      var text = HTTPClient.text("POST", target: "/admin/prefetch", headers: headers, bodyLength: 1)
      // In Swift, "\r\n" is one character.
      text.removeLast()
      try client.send(text + "Authorization: Bearer 0123456789abcdef\r\n\r\n\n")
      #expect(try client.readAnswer().status == 403)
    }
    #expect(provider.asked.value == 0)
  }

  @Test func `a memory hit is served even to a looping request`() async throws {
    let provider = TestProvider()
    provider.keep(makeVariant(try makeRequest().key))
    try await withClient(provider, configure: { $0.id = "me" }) { client in
      let answer = try client.get(imageTarget, headers: ["CDN-Loop": "me"])
      #expect(answer.status == 200)
    }
  }

  @Test func `the trail of other servers is forwarded`() async throws {
    let provider = TestProvider.making()
    try await withClient(provider, configure: { $0.id = "me" }) { client in
      _ = try client.get(imageTarget)
      _ = try client.get(
        imageTarget, headers: ["CDN-Loop": "a; b=1", "CDN-Loop": "c", "Via": "1.1 d"])
    }
    let trails = provider.requests.withLock { $0.map(\.options.trail) }
    #expect(trails == [ServerTrail(), ServerTrail(parsing: "a; b=1, c")])
  }
}
