// BlockedLogTests: tests that requests are answered while the log is blocked.

import Glibc
import Model
import Telemetry
import TestSupport
import Testing

@testable import Serving

@Suite(.onOwnThreads) struct BlockedLogTests {
  @Test func `with a log that nobody reads, hits, misses, errors and statistics are answered`()
    async throws
  {
    // Given a log on a pipe that is full
    var ends: [CInt] = [0, 0]
    try #require(pipe(&ends) == 0)
    let (reading, writing) = (ends[0], ends[1])
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
      // When more is asked than the queue has room for
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
    // A reader that leaves ends what waits.
    close(reading)
    #expect(queue.stop(within: .seconds(10)))
  }
}
