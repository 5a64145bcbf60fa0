// ClientFreshnessTests: tests lifetimes in private caches, and lifetimes of failures.

import Core
import Testing

struct ClientFreshnessTests {
  private let now = UnixTime(seconds: 1_000)

  @Test func `the origin's client lifetime is fixed, and the default counts from the response`() {
    // Given
    let stated = Freshness(receivedAt: now, lifetime: 600, clientLifetime: 60)
    let open = Freshness(receivedAt: now, lifetime: 600, isStated: false, clientTime: 60)
    // Then
    #expect([0, 30, 700].map { stated.clientMaxAge(atAge: $0) } == [60, 60, 60])
    #expect(
      [0, 30, 539, 540, 600, 700].map { open.clientMaxAge(atAge: $0) } == [
        60, 90, 599, 600, 600, 600,
      ])
    #expect(stated.isOtherForClients && open.isOtherForClients)
    #expect(!Freshness(receivedAt: now, lifetime: 600).isOtherForClients)
    #expect(!Freshness(receivedAt: now, lifetime: 600, clientTime: 600).isOtherForClients)
  }

  @Test func `extreme lifetimes do not overflow`() {
    for lifetime in [0, 1, Int.max] {
      for time in [0, 1, Int.max] {
        let freshness = Freshness(
          receivedAt: now, lifetime: .max, clientLifetime: lifetime, clientTime: time)
        for age in [0, 1, 1 << 40] { #expect(freshness.clientMaxAge(atAge: age) >= 0) }
        let both = freshness.combined(with: Freshness(receivedAt: now, lifetime: 5))
        #expect(both.clientLifetime == min(lifetime, 5) && both.clientTime == min(time, 1 << 31))
      }
    }
  }

  @Test func `combined freshness uses the stricter client lifetime, regardless of order`() {
    // Given: the first expires at 1,060 in all caches, the second at 1,030 in private caches only
    let first = Freshness(receivedAt: now, lifetime: 60)
    let second = Freshness(
      receivedAt: UnixTime(seconds: 980), initialAge: 10, lifetime: 600, isStated: false,
      clientLifetime: 60, clientTime: 7)
    for both in [first.combined(with: second), second.combined(with: first)] {
      // Then
      #expect(both.lifetime == 60 && both.receivedAt == now && both.isStated)
      #expect(both.clientLifetime == 30 && both.clientTime == 7)
    }
  }

  @Test func `a failure is remembered no longer than the origin's lifetime, if it states one`() {
    let open = Freshness(receivedAt: now, lifetime: 60, isStated: false, clientTime: 30)
    let stated = Freshness(receivedAt: now, initialAge: 20, lifetime: 60, clientLifetime: 25)
    let unstorable = Freshness(receivedAt: now, lifetime: 60, isStorable: false)
    #expect(open.bounding(failure: 600, at: now) == 600)
    #expect(open.bounding(clientFailure: 600, at: now) == 30)
    #expect(stated.bounding(failure: 600, at: now) == 40)
    #expect(stated.bounding(failure: 10, at: now) == 10)
    #expect(stated.bounding(clientFailure: 600, at: now) == 5)
    #expect(stated.bounding(failure: 600, at: UnixTime(seconds: 2_000)) == 0)
    #expect(unstorable.bounding(failure: 600, at: now) == 0)
    #expect(unstorable.bounding(clientFailure: 600, at: now) == 0)
  }
}
