// RequestBreakerTests: the breaker of a store, without requests and clocks.

import Testing

@testable import Sharing

@Suite struct RequestBreakerTests {
  private let start = ContinuousClock.now

  private func breaker() -> RequestBreaker {
    RequestBreaker(BackOff(interval: .seconds(1)) { $0.lowerBound })
  }

  private func opened() -> RequestBreaker {
    var breaker = breaker()
    _ = breaker.end(.ordinary, .failed, now: start)
    return breaker
  }

  @Test func `a closed breaker admits all, and stays closed while the store answers`() {
    var breaker = breaker()
    for verdict in [RequestBreaker.Verdict.alive, .unknown] {
      #expect(breaker.admit(now: start) == .ordinary)
      #expect(breaker.end(.ordinary, verdict, now: start) == false)
      #expect(breaker.state == .closed)
    }
  }

  @Test func `a failure opens it for the interval, and then one request is the probe`() {
    var breaker = opened()
    #expect(!breaker.isReady(now: start + .milliseconds(999)))
    #expect(breaker.admit(now: start + .milliseconds(999)) == nil)
    #expect(breaker.isReady(now: start + .seconds(1)))
    #expect(breaker.admit(now: start + .seconds(1)) == .probe)
    // All others fail at once meanwhile.
    #expect(!breaker.isReady(now: start + .seconds(100)))
    #expect(breaker.admit(now: start + .seconds(100)) == nil)
  }

  @Test func `a probe with an answer closes it, and the next failure begins with the interval`() {
    var breaker = opened()
    _ = breaker.admit(now: start + .seconds(1))
    #expect(breaker.end(.probe, .alive, now: start + .seconds(1)) == true)
    #expect(breaker.state == .closed && breaker.failures == 0)
    #expect(breaker.end(.ordinary, .failed, now: start + .seconds(5)) == true)
    #expect(breaker.state == .open(start + .seconds(6)))
  }

  @Test func `the pause doubles with each probe that fails, up to eight times`() {
    var breaker = opened()
    var now = start
    for seconds in [1, 2, 4, 8, 8, 8] {
      #expect(breaker.state == .open(now + .seconds(seconds)))
      now += .seconds(seconds)
      #expect(breaker.admit(now: now) == .probe)
      #expect(breaker.end(.probe, .failed, now: now) == false)
    }
  }

  @Test func `a probe that was not sent leaves the next request as the probe`() {
    var breaker = opened()
    _ = breaker.admit(now: start + .seconds(1))
    #expect(breaker.end(.probe, .unknown, now: start + .seconds(1)) == false)
    #expect(breaker.failures == 1)
    #expect(breaker.admit(now: start + .seconds(1)) == .probe)
  }

  @Test func `requests of before the opening change nothing`() {
    var breaker = opened()
    let state = breaker.state
    for verdict in [RequestBreaker.Verdict.failed, .alive, .unknown] {
      #expect(breaker.end(.ordinary, verdict, now: start + .milliseconds(500)) == false)
      #expect(breaker.state == state && breaker.failures == 1)
    }
  }

  @Test func `jitter makes a pause longer and never shorter`() {
    let backOff = BackOff(interval: .seconds(1)) { range in
      #expect(range.lowerBound == 1)
      return range.upperBound
    }
    var breaker = RequestBreaker(backOff)
    _ = breaker.end(.ordinary, .failed, now: start)
    #expect(breaker.state == .open(start + .milliseconds(1_250)))
  }
}
