// ResponsivenessTests: a server tells whether its event loops work.

import Core
import TestSupport
import Testing

@testable import Serving

@Suite(.onOwnThreads) struct ResponsivenessTests {
  @Test func `a server responds unless one of its event loops is blocked`() async throws {
    // Given a server whose figures block the event loop that computes them
    let isBlocked = Counter()
    let gate = Semaphore()
    try await withServer {
      $0.workers = 3
      $0.operatorAddress = ListenAddress("127.0.0.1:0")
    } stats: { requests, isDraining in
      isBlocked.add()
      gate.wait()
      return makeStats(requests, isDraining: isDraining)
    } body: { server in
      // Idle loops respond as well.
      for _ in 0..<20 { #expect(server.responds(within: .seconds(20))) }
      // When
      let client = try HTTPClient(port: try #require(server.operatorPort))
      try client.send(HTTPClient.text("GET", target: "/stats"))
      try await eventually { isBlocked.value == 1 }
      // Then
      #expect(!server.responds(within: .milliseconds(50)))
      gate.post()
      #expect(try client.readAnswer().status == 200)
      #expect(server.responds(within: .seconds(20)))
    }
  }
}
