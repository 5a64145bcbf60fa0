// RetryPolicyTests: tests of RetryPolicy, without sockets, clocks or randomness.

import Core
import TestSupport
import Testing

@testable import Downloading

@Suite(.onOwnThreads) struct RetryPolicyTests {
  private let now = UnixTime(seconds: 784_111_777)

  private func delay(
    after failure: RetryPolicy.Failure, limit: Int = 1, retries: Int = 0,
    left: Duration = .seconds(15),
    chance: Double = 0.5
  ) -> Duration? {
    RetryPolicy(limit: limit, delay: .milliseconds(200)).delay(
      after: failure, retries: retries, timeLeft: left, chance: chance, now: now)
  }

  @Test func `a failed connection is retried after a delay with 50 % jitter`() {
    #expect(delay(after: .connection) == .milliseconds(200))
    #expect(delay(after: .connection, chance: 0) == .milliseconds(100))
    #expect(delay(after: .connection, chance: 1) == .milliseconds(300))
  }

  @Test func `retries end at the limit, and each delay doubles`() {
    #expect(delay(after: .connection, retries: 1) == nil)
    #expect(delay(after: .connection, limit: 0) == nil)
    let delays = (0...3).map { delay(after: .connection, limit: 3, retries: $0) }
    #expect(delays == [.milliseconds(200), .milliseconds(400), .milliseconds(800), nil])
  }

  @Test func `no retry is scheduled after the time-out`() {
    #expect(delay(after: .connection, left: .milliseconds(200)) == nil)
    #expect(delay(after: .connection, left: .milliseconds(201)) != nil)
    #expect(delay(after: .status(503, retryAfter: "2"), left: .seconds(2)) == nil)
  }

  @Test(arguments: [502, 503, 504])
  func `a retry waits at least for Retry-After, if that is short`(
    _ status: Int
  ) {
    #expect(delay(after: .status(status, retryAfter: "0")) == .milliseconds(200))
    #expect(delay(after: .status(status, retryAfter: "2")) == .milliseconds(2_200))
    for text in [nil, "3", "99999999999999999999999", "-1", "1.5", "soon", ""] as [String?] {
      #expect(delay(after: .status(status, retryAfter: text)) == nil, "\(text ?? "none")")
    }
  }

  @Test func `Retry-After may be a date in the past or future`() {
    for (date, expected) in [
      ("Sun, 06 Nov 1994 08:49:37 GMT", 200), ("Sun, 06 Nov 1994 08:49:39 GMT", 2_200),
      ("Sun, 06 Nov 1994 08:00:00 GMT", 200), ("Sun, 06 Nov 1994 08:49:40 GMT", nil),
    ] {
      let delay = delay(after: .status(503, retryAfter: date))
      #expect(delay == expected.map { .milliseconds($0) }, "\(date)")
    }
  }
}
