// CircuitBreakerTests: tests of CircuitBreaker, without sockets or clocks.

import Core
import TestSupport
import Testing

@testable import Downloading

@Suite(.onOwnThreads) struct CircuitBreakerTests {
  private let start = ContinuousClock.now

  private func makeBreaker(_ threshold: Int = 3, hosts: Int = 100) -> CircuitBreaker {
    CircuitBreaker(threshold: threshold, openTime: .seconds(30), hostLimit: hosts)
  }

  /// Lets loads of a host fail one after the other. Returns for each whether it opened the circuit.
  private func fail(
    _ breaker: inout CircuitBreaker, host: String, times: Int, at now: ContinuousClock.Instant
  ) -> [Bool] {
    (1...times).map { id in
      _ = breaker.admit(id, to: host, now: now)
      return breaker.end(id, at: host, outcome: .failure, now: now)
    }
  }

  @Test func `a threshold of 0 disables the breaker`() {
    var breaker = makeBreaker(0)
    let opened = fail(&breaker, host: "a", times: 1_000, at: start)
    #expect(!opened.contains(true))
    #expect(breaker.hostCount == 0)
  }

  @Test func `the number of tracked hosts is limited, and open circuits are kept longest`() {
    // Given
    var breaker = makeBreaker(2, hosts: 8)
    _ = fail(&breaker, host: "dead", times: 2, at: start)
    // When
    for number in 1...100 {
      _ = fail(&breaker, host: "h\(number)", times: 1, at: start + .milliseconds(number))
      #expect(breaker.hostCount <= 8)
    }
    // Then
    #expect(breaker.refuses(9, to: "dead", now: start + .seconds(1)))
    #expect(breaker.openCount == 1)
    // When: all tracked circuits are open
    for number in 1...100 {
      _ = fail(&breaker, host: "d\(number)", times: 2, at: start + .seconds(number))
      #expect(breaker.hostCount <= 8 && breaker.openCount <= 8)
    }
    // Then: the newest are kept
    #expect(breaker.refuses(9, to: "d100", now: start + .seconds(100)))
    #expect(!breaker.refuses(9, to: "dead", now: start + .seconds(1)))
  }

  @Test(arguments: [
    (ImageError.sourceUnreachable(detail: ""), Breaker.Outcome.failure),
    (.sourceTimeout(detail: ""), .failure), (.sourceTLS(detail: ""), .failure),
    (.forbiddenSource(reason: "", detail: ""), .nothing), (.cancelled, .nothing),
    (.draining, .nothing), (.internal(detail: ""), .nothing),
  ])
  func `an error counts against a host that was not connected`(
    error: ImageError, expected: Breaker.Outcome
  ) {
    #expect(Breaker.Outcome(of: .failure(error), wasConnected: false) == expected)
  }

  @Test(arguments: [
    ImageError.sourceUnreachable(detail: ""), .sourceTimeout(detail: ""), .sourceTLS(detail: ""),
    .sourceError(status: 500), .sourceNotFound(status: 404), .sourceTooLarge(limit: 1),
    .sourceIncomplete(detail: ""), .forbiddenSource(reason: "", detail: ""),
  ])
  func `no error counts against a host that was connected`(error: ImageError) {
    #expect(Breaker.Outcome(of: .failure(error), wasConnected: true) == .success)
    for error in [ImageError.cancelled, .draining, .internal(detail: "")] {
      #expect(Breaker.Outcome(of: .failure(error), wasConnected: true) == .nothing)
    }
  }

  @Test func `failures in a row open a circuit for longer each time, and a success closes it`() {
    // Given
    var breaker = makeBreaker(3)
    var now = start
    #expect(fail(&breaker, host: "a", times: 3, at: now) == [false, false, true])
    // Then each probe that fails doubles the time, up to the longest
    for seconds in [30, 60, 120, 240, 300, 300] {
      #expect(breaker.refuses(4, to: "a", now: now + .seconds(seconds) - .milliseconds(1)))
      now += .seconds(seconds)
      #expect(breaker.openCount == 1 && !breaker.refuses(4, to: "b", now: now))
      #expect(fail(&breaker, host: "a", times: 1, at: now) == [true])
    }
    // And another load is refused while the probe runs
    now += .seconds(300)
    let isProbe = breaker.admit(5, to: "a", now: now)
    #expect(isProbe && breaker.refuses(6, to: "a", now: now))
    let opens = breaker.end(5, at: "a", outcome: .success, now: now)
    #expect(!opens && breaker.openCount == 0 && breaker.hostCount == 0)
    #expect(fail(&breaker, host: "a", times: 3, at: now) == [false, false, true])
  }
}
