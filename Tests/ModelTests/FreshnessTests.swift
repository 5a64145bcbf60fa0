// Tests of Freshness and CacheStatus: ages to the second, RFC 9211's words.

import Testing

@testable import Model

struct FreshnessTests {
  @Test func `age counts from where the origin's left off`() {
    let freshness = Freshness(
      receivedAt: UnixTime(seconds: 100), initialAge: 30, lifetime: 60)
    #expect(freshness.age(at: UnixTime(seconds: 110)) == 40)
    #expect(freshness.isFresh(at: UnixTime(seconds: 129)))
    #expect(!freshness.isFresh(at: UnixTime(seconds: 130)))
  }

  @Test func `stale is served to who takes it, and only where that is allowed`() {
    var demands = AgeDemands()
    demands.maxStale = 10
    for mayBeStale in [true, false] {
      let freshness = Freshness(
        receivedAt: UnixTime(seconds: 100), lifetime: 60, mayBeStale: mayBeStale)
      #expect(freshness.satisfies(demands, at: UnixTime(seconds: 159)))
      #expect(freshness.satisfies(demands, at: UnixTime(seconds: 170)) == mayBeStale)
      #expect(!freshness.satisfies(demands, at: UnixTime(seconds: 171)))
      #expect(!freshness.satisfies(AgeDemands(), at: UnixTime(seconds: 160)))
    }
  }

  @Test func `a clock set back makes nothing younger`() {
    let freshness = Freshness(receivedAt: UnixTime(seconds: 100), initialAge: 5, lifetime: 60)
    #expect(freshness.age(at: UnixTime(seconds: 1)) == 5)
  }

  @Test(arguments: [
    (CacheStatus.hit(.memory), "pictor; hit; detail=memory"),
    (.hit(.source), "pictor; hit; detail=source"),
    (
      .miss(.uriMiss, stored: true, collapsed: true, originStatus: 200),
      "pictor; fwd=uri-miss; fwd-status=200; stored; collapsed"
    ),
    (
      .miss(.stale, stored: false, collapsed: false, originStatus: nil),
      "pictor; fwd=stale"
    ),
  ])
  func `the cache status is RFC 9211's`(status: CacheStatus, value: String) {
    #expect(status.headerValue == value)
  }

  @Test func `timings add up and keep their order`() {
    var timings = Timings()
    timings.encode = .milliseconds(2)
    var more = Timings()
    more.queue = .milliseconds(1)
    more.encode = .milliseconds(3)
    timings.add(more)
    #expect(timings.entries.map(\.name) == ["queue", "encode"])
    #expect(timings.encode == .milliseconds(5))
  }
}
