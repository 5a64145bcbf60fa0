// ReadingPaceTests: how fast a client has to read, by the rule and against a real server.

import Core
import Glibc
import TestSupport
import Testing

@testable import Serving

@Suite(.onOwnThreads) struct ReadingPaceTests {
  private func rule() throws -> ReadingPace.Rule {
    try #require(ReadingPace.Rule(window: 30_000, rate: 64 << 10))
  }

  /// A client that receives a response in steps, looked at as the server does.
  private struct Client {
    /// Bytes per second.
    let rate: Int
    /// Bytes that are acknowledged at a time.
    let step: Int
    /// Seconds after which it stops to read.
    var stopsAfter = Int.max

    /// Returns what it has received after some seconds: the first step at once, into a buffer.
    func received(at second: Int) -> Int {
      1_000 + step * (1 + min(second, stopsAfter) * rate / step)
    }

    /// Returns after how many seconds it is cut; `nil` if it is not within `limit`.
    func isCut(
      by rule: ReadingPace.Rule, within limit: Int, isPending: (Int) -> Bool = { _ in true }
    ) -> Int? {
      func progress(_ second: Int) -> SocketProgress {
        SocketProgress(received: received(at: second), isPending: isPending(second))
      }
      var pace = ReadingPace(response: 1, rule, at: 0, progress(0))
      for second in 1...limit where pace.isDue(rule, at: second * 1_000) {
        if pace.look(rule, at: second * 1_000, progress(second)) { return second }
      }
      return nil
    }
  }

  @Test(arguments: [4 << 10, 1 << 20, 2 << 20, 3 << 20, 6 << 20])
  func `a steady client above the rate stays, however large its steps are`(step: Int) throws {
    let client = Client(rate: 66 << 10, step: step)
    #expect(client.isCut(by: try rule(), within: 24 * 3_600) == nil)
  }

  @Test(arguments: [4 << 10, 1 << 20, 2 << 20, 3 << 20, 6 << 20])
  func `a client below the rate is cut, however large its steps are`(step: Int) throws {
    let client = Client(rate: 60 << 10, step: step)
    // An account of 120 s at most loses 4 KiB a second.
    let cut = try #require(client.isCut(by: try rule(), within: 24 * 3_600))
    #expect(cut <= 120 * 64 / 4 + 5)
  }

  @Test func `a client at half the rate is cut after a minute`() throws {
    #expect(Client(rate: 32 << 10, step: 4 << 10).isCut(by: try rule(), within: 600) == 65)
  }

  @Test func `a client that stops is cut after a window, and after four at most`() throws {
    #expect(Client(rate: 1, step: 1, stopsAfter: 0).isCut(by: try rule(), within: 600) == 35)
    // Given a client that was a thousand times as fast, and one that filled its receive buffer
    let fast = Client(rate: 64 << 20, step: 64 << 10, stopsAfter: 100)
    #expect(fast.isCut(by: try rule(), within: 600) == 100 + 125)
    let filled = Client(rate: 6 << 20, step: 6 << 20, stopsAfter: 1)
    #expect(filled.isCut(by: try rule(), within: 600) == 130)
  }

  @Test func `time in which the server had nothing more to send is not charged`() throws {
    let stopped = Client(rate: 1, step: 1, stopsAfter: 0)
    #expect(stopped.isCut(by: try rule(), within: 3_600) { _ in false } == nil)
    // Given a source that brings its bytes in one of ten looks
    #expect(stopped.isCut(by: try rule(), within: 3_600) { $0 % 50 == 0 } == nil)
    // Given one that has brought everything after 20 minutes
    #expect(stopped.isCut(by: try rule(), within: 3_600) { $0 >= 1_200 } == 1_235)
  }

  @Test func `what the kernel does not tell is not held against a client`() throws {
    let rule = try rule()
    let unknown = SocketProgress(received: nil, isPending: true)
    var pace = ReadingPace(response: 1, rule, at: 0, unknown)
    for look in 1...100 {
      // Every other look knows
      let progress =
        look % 2 == 0 ? unknown : SocketProgress(received: 7, isPending: true)
      let isSlow = pace.look(rule, at: look * 5_000, progress)
      #expect(!isSlow)
    }
  }

  @Test func `the account is looked at six times a window`() throws {
    let rule = try rule()
    let pace = ReadingPace(
      response: 1, rule, at: 1_000, SocketProgress(received: 1, isPending: true))
    #expect(!pace.isDue(rule, at: 5_999) && pace.isDue(rule, at: 6_000))
  }

  @Test func `any rate has a rule, whose account does not overflow`() throws {
    let rule = try #require(ReadingPace.Rule(window: 30_000, rate: .max))
    var pace = ReadingPace(response: 1, rule, at: 0, SocketProgress(received: 1, isPending: true))
    let late = SocketProgress(received: 1, isPending: true)
    let isSlow = pace.look(rule, at: .max, late)
    #expect(isSlow)
  }

  @Test func `without a rate there is no rule`() {
    var configuration = ServerConfiguration()
    #expect(configuration.leastPace == ReadingPace.Rule(window: 30_000, rate: 64 << 10))
    configuration.minimumRate = 0
    #expect(configuration.leastPace == nil)
  }

  @Test func `a client that stops reading a small response is cut`() async throws {
    // Given a server whose windows are short, and whose deadlines are not
    let length = 1 << 20
    let provider = TestProvider()
    provider.keep(
      makeVariant(try makeRequest().key, body: [UInt8](repeating: 1, count: length)))
    try await withServer(provider) {
      $0.answerTimeout = .seconds(600)
      $0.requestTimeout = .milliseconds(200)
      $0.idleTimeout = .seconds(600)
      $0.rateWindow = .milliseconds(300)
      $0.minimumRate = 64 << 10
    } body: { server in
      // When a client reads a part
      let client = try HTTPClient(port: server.port, receiveBuffer: 4_096)
      try client.send(HTTPClient.text("GET", target: imageTarget))
      _ = try client.read(10_000)
      // Then
      try await eventually { server.figures.connections == 0 }
      #expect(server.figures.bytesSent < length)
    }
  }
}
