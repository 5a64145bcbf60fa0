// FreshnessTests: tests ages and lifetimes to the second, and Cache-Status in RFC 9211's terms.

import Testing

@testable import Core

struct FreshnessTests {
  @Test func `age continues from the initial age`() {
    let freshness = Freshness(
      receivedAt: UnixTime(seconds: 100), initialAge: 30, lifetime: 60)
    #expect(freshness.age(at: UnixTime(seconds: 110)) == 40)
    #expect(freshness.isFresh(at: UnixTime(seconds: 129)))
    #expect(!freshness.isFresh(at: UnixTime(seconds: 130)))
  }

  @Test func `max-stale accepts a stale response only if it may be stale`() {
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

  @Test func `a placeholder's lifetime is shortened and never extended`() {
    let freshness = Freshness(
      receivedAt: UnixTime(seconds: 100), initialAge: 5, lifetime: 60, isImmutable: true)
    let now = UnixTime(seconds: 110)
    let ending = freshness.ending(within: 10, of: now)
    #expect(ending.timeToLive(at: now) == 10 && !ending.isImmutable)
    #expect(ending.age(at: now) == freshness.age(at: now))
    #expect(freshness.ending(within: 100, of: now).lifetime == 60)
  }

  @Test func `a damaged image is fresh for a minute and never stale`() {
    // Given
    let freshness = Freshness(
      receivedAt: UnixTime(seconds: 100), lifetime: 600, staleWhileRevalidate: 60, staleIfError: 60)
    var demands = AgeDemands()
    demands.maxStale = .max
    // When
    let damaged = freshness.ofDamaged(at: UnixTime(seconds: 110))
    // Then
    #expect(damaged.isFresh(at: UnixTime(seconds: 169)))
    let end = UnixTime(seconds: 170)
    #expect(!damaged.satisfies(demands, at: end) && !damaged.mayBeStale)
    #expect(!damaged.mayBeServedWhileRevalidating(at: end) && !damaged.mayBeServedOnError(at: end))
  }

  @Test(arguments: [
    (.min, 0, 0), (-1, 0, 0), (Freshness.unlimited, Freshness.unlimited, Freshness.unlimited),
    (1 << 40, Int(UInt32.max), 1 << 40), (.max, Int(UInt32.max), 1 << 40),
  ])
  func `times outside their ranges are clamped`(seconds: Int, time: Int, age: Int) {
    let freshness = Freshness(
      receivedAt: UnixTime(seconds: 100), initialAge: seconds, lifetime: seconds,
      staleWhileRevalidate: seconds, staleIfError: seconds, clientLifetime: seconds,
      clientTime: seconds)
    #expect(freshness.initialAge == age)
    let times = [
      freshness.lifetime, freshness.staleWhileRevalidate, freshness.staleIfError,
      freshness.clientLifetime, freshness.clientTime,
    ]
    #expect(times == Array(repeating: time, count: 5))
    let equal = Freshness(
      receivedAt: UnixTime(seconds: 100), initialAge: age, lifetime: time,
      staleWhileRevalidate: time, staleIfError: time, clientLifetime: time, clientTime: time)
    #expect(freshness == equal)
  }

  @Test func `combined freshness expires with the first to expire`() {
    // Given
    let long = Freshness(
      receivedAt: UnixTime(seconds: 100), initialAge: 5, lifetime: .max, staleWhileRevalidate: 9,
      staleIfError: 1, isImmutable: true)
    let short = Freshness(
      receivedAt: UnixTime(seconds: 200), lifetime: 60, staleWhileRevalidate: 2, staleIfError: 8)
    let never = Freshness(
      receivedAt: UnixTime(seconds: 0), lifetime: 61, isStorable: false, mayBeStale: false)
    // When, then
    let both = Freshness(
      receivedAt: UnixTime(seconds: 200), lifetime: 60, staleWhileRevalidate: 2, staleIfError: 1)
    #expect(long.combined(with: short) == both && short.combined(with: long) == both)
    let three = both.combined(with: never)
    #expect(!three.isStorable && !three.mayBeStale && three.staleIfError == 0)
    #expect(three.receivedAt == never.receivedAt && three.lifetime == never.lifetime)
  }

  @Test func `a clock set back does not reduce the age`() {
    let freshness = Freshness(receivedAt: UnixTime(seconds: 100), initialAge: 5, lifetime: 60)
    #expect(freshness.age(at: UnixTime(seconds: 1)) == 5)
  }

  @Test func `a response from the future is not fresh and is served only on errors`() {
    let freshness = Freshness(
      receivedAt: UnixTime(seconds: 1_000), lifetime: 60, staleWhileRevalidate: 60,
      staleIfError: 60)
    var demands = AgeDemands()
    demands.maxStale = .max
    #expect(freshness.isFresh(at: UnixTime(seconds: 940)))
    let before = UnixTime(seconds: 939)
    #expect(!freshness.isFresh(at: before) && !freshness.satisfies(demands, at: before))
    #expect(!freshness.mayBeServedWhileRevalidating(at: before))
    #expect(freshness.mayBeServedOnError(at: before))
    let strict = Freshness(
      receivedAt: UnixTime(seconds: 1_000), lifetime: 60, mayBeStale: false, staleIfError: 60)
    #expect(!strict.mayBeServedOnError(at: before))
  }

  @Test func `stale-while-revalidate and stale-if-error end after their seconds, RFC 5861`() {
    let freshness = Freshness(
      receivedAt: UnixTime(seconds: 100), lifetime: 60, staleWhileRevalidate: 10,
      staleIfError: 20)
    #expect(freshness.mayBeServedWhileRevalidating(at: UnixTime(seconds: 169)))
    #expect(!freshness.mayBeServedWhileRevalidating(at: UnixTime(seconds: 170)))
    #expect(freshness.mayBeServedOnError(at: UnixTime(seconds: 179)))
    #expect(!freshness.mayBeServedOnError(at: UnixTime(seconds: 180)))
    #expect(freshness.timeToLive(at: UnixTime(seconds: 165)) == -5)
    let none = Freshness(
      receivedAt: UnixTime(seconds: 100), lifetime: 60, mayBeStale: false,
      staleWhileRevalidate: 10, staleIfError: 10)
    #expect(!none.mayBeServedWhileRevalidating(at: UnixTime(seconds: 160)))
    #expect(!none.mayBeServedOnError(at: UnixTime(seconds: 160)))
  }

  @Test func `a reload of a fresh immutable response needs no revalidation, RFC 8246`() {
    var reload = AgeDemands()
    reload.maxAge = 0
    for isImmutable in [true, false] {
      let freshness = Freshness(
        receivedAt: UnixTime(seconds: 100), lifetime: 60, isImmutable: isImmutable)
      #expect(freshness.satisfies(reload, at: UnixTime(seconds: 110)) == isImmutable)
      #expect(!freshness.satisfies(reload, at: UnixTime(seconds: 160)))
      var younger = AgeDemands()
      younger.maxAge = 5
      #expect(!freshness.satisfies(younger, at: UnixTime(seconds: 110)))
    }
  }

  @Test(arguments: [
    (CacheStatus.hit(.memory), "pictor; hit; detail=memory"),
    (.hit(.source), "pictor; hit; detail=source"),
    (
      .miss(.uriMiss, stored: true, collapsed: true, originStatus: 200),
      "pictor; fwd=uri-miss; fwd-status=200; stored; collapsed"
    ),
    (.staleHit(.memory, .whileRevalidating, ttl: -5), "pictor; hit; ttl=-5; detail=memory"),
    (
      .staleIfError(collapsed: false, originStatus: 503),
      "pictor; fwd=stale; fwd-status=503; detail=stale-if-error"
    ),
    (
      .staleIfError(collapsed: true, originStatus: nil),
      "pictor; fwd=stale; collapsed; detail=stale-if-error"
    ),
    (
      .miss(.stale, stored: false, collapsed: false, originStatus: nil),
      "pictor; fwd=stale"
    ),
  ])
  func `the cache status follows RFC 9211`(status: CacheStatus, value: String) {
    #expect(status.headerValue == value)
  }

  @Test func `timings add up and keep their order`() {
    var timings = Timings()
    timings.encode = .milliseconds(2)
    var more = Timings()
    more.queue = .milliseconds(1)
    more.encode = .milliseconds(3)
    timings.add(more)
    var stages: [Timings.Stage] = []
    timings.forEachStage { stage, _ in stages.append(stage) }
    #expect(stages == [.queue, .encode])
    #expect(timings.encode == .milliseconds(5))
  }
}
