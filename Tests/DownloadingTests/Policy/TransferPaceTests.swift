// TransferPaceTests: tests of TransferPace, without sockets or clocks.

import Core
import Testing

@testable import Downloading

@Suite struct TransferPaceTests {
  private let start = ContinuousClock.now
  private let limits = TransferPace.Limits(
    silentAfter: .seconds(1), window: .seconds(2), minimumRate: 16 << 10)

  private func at(_ seconds: Double) -> ContinuousClock.Instant { start + .seconds(seconds) }

  @Test(arguments: [(0, 0), (1_000, 0), (32_767, 15), (16_384, 8)])
  func `a host that sends less than the minimum for two seconds is slow`(bytes: Int, rate: Int) {
    var pace = TransferPace(limits, asked: start)
    #expect(pace.check(answered: at(0.5), bytes: 0, now: at(2.4)) == nil)
    #expect(pace.next(answered: at(0.5)) == at(2.5))
    #expect(pace.check(answered: at(0.5), bytes: bytes, now: at(2.5)) == .slow(rate: rate))
  }

  @Test func `each window counts by itself`() {
    var pace = TransferPace(limits, asked: start)
    #expect(pace.check(answered: start, bytes: 1_000_000, now: at(2)) == .fast)
    #expect(pace.check(answered: start, bytes: 1_000_100, now: at(3)) == nil)
    #expect(pace.next(answered: start) == at(4))
    #expect(pace.check(answered: start, bytes: 1_000_100, now: at(4)) == .slow(rate: 0))
    #expect(pace.check(answered: start, bytes: 1_100_000, now: at(6)) == .fast)
  }

  @Test func `a window that a busy server measures late is as long as it is`() {
    var pace = TransferPace(limits, asked: start)
    #expect(pace.check(answered: start, bytes: 100_000, now: at(8)) == .slow(rate: 12))
    #expect(pace.next(answered: start) == at(10))
  }

  @Test func `a host that responds late has the whole window`() {
    var pace = TransferPace(limits, asked: start)
    #expect(pace.check(answered: nil, bytes: 0, now: at(1)) == .silent)
    #expect(pace.check(answered: at(5), bytes: 10, now: at(6)) == nil)
    #expect(pace.next(answered: at(5)) == at(7))
    #expect(pace.check(answered: at(5), bytes: 10, now: at(7)) == .slow(rate: 0))
  }
}
