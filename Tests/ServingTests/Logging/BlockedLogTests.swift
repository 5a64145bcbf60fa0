// BlockedLogTests: tests that requests are answered while the log is blocked.

import Core
import Glibc
import TestSupport
import Testing

@testable import Serving

@Suite(.onOwnThreads) struct BlockedLogTests {
  @Test func `with a blocked log, hits, misses, errors and statistics are answered`()
    async throws
  {
    // Given a log that writes to a full pipe
    var ends: [CInt] = [0, 0]
    try #require(pipe(&ends) == 0)
    let reading = ends[0]
    let writing = ends[1]
    defer { close(writing) }
    let flags = fcntl(writing, F_GETFL)
    _ = fcntl(writing, F_SETFL, flags | O_NONBLOCK)
    while write(writing, [0], 1) == 1 {}
    _ = fcntl(writing, F_SETFL, flags)
    let queue = try LogQueue(format: .json, descriptor: writing, limit: 10_000)
    let log = Log(level: .debug, queue: queue)
    let provider = TestProvider()
    provider.keep(makeVariant(try makeRequest().key))
    try await withServer(provider, log: log) { server in
      // When there are more requests than the log queue can hold
      let client = try HTTPClient(port: server.port, timeout: 10)
      for _ in 0..<100 {
        #expect(try client.get(imageTarget).status == 200)
        #expect(try client.get("/image?url=https://example.org/other.png").status == 404)
        #expect(try client.get("/nothing").status == 404)
        #expect(try client.get("/stats").status == 200)
      }
      // Then
      #expect(log.figures.dropped + log.figures.summedUp > 200)
      #expect(log.figures.written == 0)
    }
    // When the reader closes the pipe, waiting lines are dropped.
    close(reading)
    #expect(queue.stop(within: .seconds(10)))
  }
}
