// ReadingPaceTests: how fast a client has to read, by the rule and against a real server.

import Glibc
import Model
import TestSupport
import Testing

@testable import Serving

@Suite(.onOwnThreads) struct ReadingPaceTests {
  private func rule() throws -> ReadingPace.Rule {
    try #require(ReadingPace.Rule(window: 30_000, rate: 64 << 10))
  }

  @Test func `each window needs its bytes, unless nothing is left to receive`() throws {
    let rule = try rule()
    #expect(rule.bytes == 15 * 65_536)
    var pace = ReadingPace(response: 1, at: 1_000, received: 500)
    #expect(!pace.isDue(rule, at: 30_999) && pace.isDue(rule, at: 31_000))
    // Given a window with enough, and one with a byte less
    var received = 500 + rule.bytes
    let isSlow = pace.end(rule, at: 31_000, SocketProgress(received: received, isPending: true))
    #expect(!isSlow)
    #expect(!pace.isDue(rule, at: 60_999) && pace.isDue(rule, at: 61_000))
    received += rule.bytes - 1
    var other = pace
    let isLess = other.end(rule, at: 61_000, SocketProgress(received: received, isPending: true))
    #expect(isLess)
    // The server itself had nothing to send
    let isIdle = pace.end(rule, at: 61_000, SocketProgress(received: received, isPending: false))
    #expect(!isIdle)
    // The next window begins anew
    let isNext = pace.end(rule, at: 91_000, SocketProgress(received: received, isPending: true))
    #expect(isNext)
  }

  @Test func `what the kernel does not tell is not held against a client`() throws {
    let rule = try rule()
    var pace = ReadingPace(response: 1, at: 0, received: nil)
    let isUnknown = pace.end(rule, at: 30_000, SocketProgress(received: 7, isPending: true))
    let isLost = pace.end(rule, at: 60_000, SocketProgress(received: nil, isPending: true))
    let isAgain = pace.end(rule, at: 90_000, SocketProgress(received: 7, isPending: true))
    #expect(!isUnknown && !isLost && !isAgain)
  }

  @Test func `any rate has a rule`() {
    #expect(ReadingPace.Rule(window: 30_000, rate: .max) != nil)
  }

  @Test func `without a rate there is no rule`() {
    var configuration = ServerConfiguration()
    #expect(configuration.leastPace == ReadingPace.Rule(window: 30_000, rate: 64 << 10))
    configuration.minimumRate = 0
    #expect(configuration.leastPace == nil)
  }

  /// Runs a server whose windows are short, and whose deadlines are not.
  private func withShortWindows(
    rate: Int, of window: Duration = .milliseconds(300),
    body: (Server, _ length: Int) async throws -> Void
  ) async throws {
    let length = 1 << 20
    let provider = TestProvider()
    provider.keep(
      makeVariant(try makeRequest().key, body: [UInt8](repeating: 1, count: length)))
    try await withServer(
      provider,
      configure: {
        $0.answerTimeout = .seconds(600)
        $0.requestTimeout = .milliseconds(200)
        $0.idleTimeout = .seconds(600)
        $0.rateWindow = window
        $0.minimumRate = rate
      }
    ) { server in try await body(server, length) }
  }

  @Test func `a client that stops reading a small response is cut after a window`() async throws {
    try await withShortWindows(rate: 64 << 10) { server, length in
      // Given a client that reads a part
      let client = try HTTPClient(port: server.port, receiveBuffer: 4_096)
      try client.send(HTTPClient.text("GET", target: imageTarget))
      _ = try client.read(10_000)
      // Then
      try await eventually { server.figures.connections == 0 }
      #expect(server.figures.bytesSent < length)
    }
  }

  @Test func `a client that reads slowly, but fast enough, gets the whole response`()
    async throws
  {
    // Given eight bytes a window, and a client that takes several windows
    try await withShortWindows(rate: 8, of: .seconds(2)) { server, length in
      let client = try HTTPClient(port: server.port, timeout: 60, receiveBuffer: 4_096)
      try client.send(HTTPClient.text("GET", target: imageTarget))
      var received = 0
      for _ in 0..<60 {
        received += try client.read(2_048).count
        usleep(100_000)
      }
      while received < length { received += try client.read(min(65_536, length - received)).count }
      #expect(received == length)
    }
  }
}
