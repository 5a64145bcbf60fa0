// TransferTimeTests: how long a client may read a response, by length and minimum rate.

import Core
import Glibc
import TestSupport
import Testing

@testable import Serving

@Suite(.onOwnThreads) struct TransferTimeTests {
  private func milliseconds(
    for bytes: Int, rate: Int = 64 << 10, answer: Duration = .seconds(120)
  ) -> Int {
    var configuration = ServerConfiguration()
    configuration.minimumRate = rate
    configuration.answerTimeout = answer
    return configuration.transferTime.milliseconds(for: bytes)
  }

  @Test func `every client has the answer time-out, and long responses their length by the rate`() {
    #expect(
      ServerConfiguration().transferTime
        == TransferTime(least: 120_000, window: 30_000, rate: 65_536))
    #expect(milliseconds(for: 0) == 120_000)
    #expect(milliseconds(for: 90 * 65_536) == 120_000)
    #expect(milliseconds(for: 100 * 65_536) == 130_000)
    #expect(milliseconds(for: 64 << 20) == 30_000 + 1_024_000)
    #expect(milliseconds(for: 0, answer: .seconds(1)) == 30_000)
  }

  @Test func `without a rate every response has the answer time-out`() {
    #expect(milliseconds(for: 1 << 40, rate: 0) == 120_000)
  }

  @Test
  func `a client that reads a large response slowly is cut, and one that is fast enough is not`()
    async throws
  {
    let provider = TestProvider()
    provider.keep(
      makeVariant(try makeRequest().key, body: [UInt8](repeating: 1, count: 16 << 20)))
    try await withServer(provider) {
      $0.answerTimeout = .milliseconds(1)
      $0.rateWindow = .milliseconds(1)
      // Four seconds for the whole response.
      $0.minimumRate = 4 << 20
    } body: { server in
      // Given a client that reads, and never stops, at a fifth of the rate
      let slow = try HTTPClient(port: server.port, receiveBuffer: 4_096)
      try slow.send(HTTPClient.text("GET", target: imageTarget))
      var received = 0
      // Then it does not get the whole response
      do throws(HTTPClientError) {
        while received < 16 << 20 {
          received += try slow.read(8_192).count
          usleep(10_000)
        }
      } catch {
        #expect(error == .closed)
      }
      #expect(received > 0 && received < 16 << 20)
      try await eventually { server.figures.connections == 0 }
    }
    // Given ten minutes for it
    try await withClient(provider) {
      $0.answerTimeout = .milliseconds(1)
      $0.rateWindow = .seconds(600)
    } body: { client throws in
      #expect(try client.get(imageTarget).body.count == 16 << 20)
    }
  }
}
