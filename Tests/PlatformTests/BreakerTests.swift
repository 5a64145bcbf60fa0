// BreakerTests: Backoff and Breaker, without a clock.

import Core
import Testing

@Suite struct BackoffTests {
  @Test func `pauses double up to a bound, which the first one may exceed`() {
    let backoff = Backoff(.seconds(1), longest: .seconds(8))
    #expect((0..<6).map { backoff.pause(after: $0) } == [1, 2, 4, 8, 8, 8].map { .seconds($0) })
    #expect(backoff.pause(after: .max) == .seconds(8))
    #expect(Backoff(.seconds(9), longest: .seconds(8)).pause(after: 3) == .seconds(9))
  }

  @Test func `jitter stays within its bounds`() {
    let backoff = Backoff(.seconds(1), longest: .seconds(8), jitter: 1...1.25)
    #expect(backoff.pause(after: 3, chance: 0) == .seconds(8))
    #expect(backoff.pause(after: 0, chance: 1) == .milliseconds(1_250))
    for _ in 0..<100 {
      #expect((.seconds(2) ... .milliseconds(2_500)).contains(backoff.pause(after: 1)))
    }
  }
}

@Suite struct BreakerTests {
  private let start = ContinuousClock.now
  private let pauses = Backoff(.seconds(1))

  @Test func `a probe without a verdict leaves the next request as the probe`() {
    var breaker = Breaker()
    let opens = breaker.end(1, .failure, pauses: pauses, now: start)
    #expect(opens && breaker.refuses(2, now: start + .milliseconds(999)))
    let later = start + .seconds(1)
    let isProbe = breaker.admit(2, now: later)
    #expect(isProbe && breaker.refuses(3, now: later) && !breaker.refuses(2, now: later))
    _ = breaker.end(2, .nothing, pauses: pauses, now: later)
    #expect(!breaker.refuses(3, now: later))
  }

  @Test(arguments: [Breaker.Outcome.success, .failure, .nothing])
  func `requests of before the opening change nothing`(outcome: Breaker.Outcome) {
    var breaker = Breaker()
    _ = breaker.end(1, .failure, pauses: pauses, now: start)
    let before = breaker.openUntil
    let opens = breaker.end(2, outcome, pauses: pauses, now: start + .milliseconds(500))
    #expect(!opens && breaker.openUntil == before && breaker.failures == 1)
  }
}
