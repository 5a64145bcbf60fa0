// EntryUseTests: tests the rule of how fresh a cached entry has to be, against a naive oracle.

import Core
import TestSupport
import Testing

@testable import Managing

struct EntryUseTests {
  private func use(
    at now: Int, originFails: Bool = false, _ change: (inout LoadOptions) -> Void = { _ in }
  ) -> EntryUse? {
    var options = LoadOptions()
    change(&options)
    let freshness = Freshness(
      receivedAt: UnixTime(seconds: 0), lifetime: 60, staleWhileRevalidate: 30, staleIfError: 600)
    return EntryUse(
      of: freshness, by: options, at: UnixTime(seconds: now), originFails: originFails)
  }

  @Test func `a request that accepts stale responses gets one of that age`() {
    func accepts(_ options: inout LoadOptions) { options.age.maxStale = 100 }
    #expect(use(at: 59, accepts) == .fresh)
    #expect(use(at: 100, accepts) == .stale(.accepted))
    #expect(use(at: 200, originFails: true, accepts) == nil)
  }

  @Test func `random requests agree with a naive oracle`() {
    var random = SeededGenerator(seed: 13)
    for _ in 0..<10_000 {
      let now = Int.random(in: 0..<800, using: &random)
      let originFails = Bool.random(using: &random)
      var options = LoadOptions()
      options.cache = [.normal, .only, .refresh, .bypass].randomElement(using: &random) ?? .normal
      options.isRevalidation = Int.random(in: 0..<4, using: &random) == 0
      if Int.random(in: 0..<4, using: &random) == 0 { options.store = [] }
      let reads = options.cache == .normal || options.cache == .only
      let allowsStale = !options.isRevalidation && !options.store.isEmpty
      var expected: EntryUse?
      if reads, allowsStale, originFails, now < 660 { expected = .stale(.ifError) }
      if reads, allowsStale, now < 90 { expected = .stale(.whileRevalidating) }
      if reads, now < 60 { expected = .fresh }
      #expect(use(at: now, originFails: originFails) { $0 = options } == expected, "\(now)")
    }
  }
}
