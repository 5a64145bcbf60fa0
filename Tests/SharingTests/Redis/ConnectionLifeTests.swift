// ConnectionLifeTests: the life cycle and the breaker, without sockets and clocks.

import Core
import Testing

@testable import Sharing

@Suite struct ConnectionLifeTests {
  private let start = ContinuousClock.now

  private func life() -> ConnectionLife {
    ConnectionLife(
      Backoff(.seconds(1), longest: .seconds(8)), patience: .seconds(2), now: start)
  }

  private func ready() -> ConnectionLife {
    var life = life()
    _ = life.advance(now: start)
    _ = life.connected(now: start)
    life.greeted()
    return life
  }

  @Test func `connects at once, greets, and is ready`() {
    var life = life()
    #expect(life.advance(now: start) == .connect)
    #expect(!life.isReady)
    #expect(life.connected(now: start) == .greet)
    #expect(!life.isReady)
    life.greeted()
    #expect(life.isReady && life.deadline == nil)
  }

  @Test func `a failure opens the breaker for the interval`() {
    var life = ready()
    #expect(life.fail(now: start) == .close)
    #expect(!life.isReady)
    #expect(life.advance(now: start + .milliseconds(999)) == .nothing)
    #expect(life.advance(now: start + .seconds(1)) == .connect)
  }

  @Test func `one failure is noted once`() {
    var life = ready()
    #expect(life.fail(now: start) == .close)
    #expect(life.fail(now: start) == .nothing)
    #expect(life.failures == 1)
  }

  @Test func `pauses double up to a bound, and a greeting resets them`() {
    var life = life()
    var now = start
    var pauses: [Duration] = []
    for _ in 0..<6 {
      _ = life.advance(now: now)
      _ = life.fail(now: now)
      pauses.append(now.duration(to: life.deadline ?? now))
      now = life.deadline ?? now
    }
    #expect(pauses == [1, 2, 4, 8, 8, 8].map { .seconds($0) })
    _ = life.advance(now: now)
    _ = life.connected(now: now)
    life.greeted()
    _ = life.fail(now: now)
    #expect(life.deadline == now + .seconds(1))
  }

  @Test func `connecting and greeting each end at their deadline`() {
    var life = life()
    _ = life.advance(now: start)
    #expect(life.advance(now: start + .seconds(2)) == .close)
    _ = life.advance(now: start + .seconds(3))
    _ = life.connected(now: start + .seconds(4))
    #expect(life.advance(now: start + .seconds(5)) == .nothing)
    #expect(life.advance(now: start + .seconds(6)) == .close)
    #expect(life.failures == 2)
  }

  @Test func `late events change nothing`() {
    var life = ready()
    #expect(life.connected(now: start) == .nothing)
    #expect(life.isReady)
    #expect(life.stop() == .close)
    life.greeted()
    #expect(!life.isReady)
    #expect(life.fail(now: start) == .nothing)
  }
}
