// Loops: a server led back to itself directly, by a load balancer or by a second server.

import Glibc
import TestSupport
import Testing

@Suite(.onOwnThreads) final class LoopTests: OriginSuite {
  @Test func `two servers that name each other end the loop, sequentially and concurrently`() throws
  {
    let first = try PictorProcess(in: folder)
    let second = try PictorProcess(in: try TemporaryFolder())
    let gate = Gate()
    for (path, next, other) in [("/1", second, "/2"), ("/2", first, "/1")] {
      let location = "http://127.0.0.1:\(next.port)" + origin.target(other)
      origin.route(path, to: .hold(gate, then: .redirect(to: location)))
    }
    // Both wait for the origin, which then redirects each to what the other is loading.
    let clients = try [(first, "/1"), (second, "/2")].map { pictor, path in
      try pictor.ask(origin.target(path))
    }
    try blockUntil("the origin has both") { origin.activeRequests == 2 }
    gate.open()
    for client in clients {
      let answer = try client.readAnswer()
      #expect(answer.status == 502 && answer.text.contains("the origin responded with status 502"))
    }
    #expect(origin.requests(to: "/1") == 2 && origin.requests(to: "/2") == 2)
    #expect(try first.get(origin.target("/1")).status == 502)
    #expect(origin.totalRequests == 6)
  }
}
