// FlightTableTests: tests joining and leaving flights, and when their work is cancelled.

import Core
import Testing

@testable import Managing

struct FlightTableTests {
  private let key = CacheKey(text: "http://a/1.png")

  @Test func `the first request starts a flight, and later ones join it`() {
    var table = FlightTable<CacheKey, String>()
    let first = table.enter(key, as: "first")
    let second = table.enter(key, as: "second")
    #expect(!first.joined)
    #expect(second.joined)
    #expect(first.flight == second.flight)
    #expect(table.finish(first.flight).sorted() == ["first", "second"])
    #expect(table.flightCount == 0)
  }

  @Test func `a flight that can be joined is joined, and none is started`() {
    var table = FlightTable<CacheKey, String>()
    #expect(table.join(key, as: "early") == nil && table.flightCount == 0)
    let first = table.enter(key, as: "first")
    let second = table.join(key, as: "second")
    #expect(second?.flight == first.flight && second?.joined == true)
    table.close(first.flight)
    #expect(table.join(key, as: "late") == nil)
    #expect(table.finish(first.flight).sorted() == ["first", "second"])
  }

  @Test func `requests with other keys do not share a flight`() {
    var table = FlightTable<CacheKey, String>()
    let one = table.enter(key, as: "one")
    let other = table.enter(CacheKey(text: "http://a/2.png"), as: "other")
    #expect(!other.joined)
    #expect(one.flight != other.flight)
  }

  @Test func `only the last participant to leave abandons the flight`() {
    var table = FlightTable<CacheKey, String>()
    let first = table.enter(key, as: "first")
    let second = table.enter(key, as: "second")
    #expect(table.leave(first)?.abandoned == nil)
    #expect(table.leave(second)?.abandoned == second.flight)
    #expect(table.finish(first.flight).isEmpty)
  }

  @Test func `a detached flight without participants counts as unattended`() {
    // Given
    var table = FlightTable<CacheKey, String>()
    let first = table.enter(key, as: "first", isDetached: true)
    let other = table.enter(CacheKey(text: "http://a/2.png"), as: "other", isDetached: true)
    #expect(table.unattendedCount == 0)
    // When they leave, then both count.
    #expect(table.leave(first)?.abandoned == nil && table.leave(other)?.abandoned == nil)
    #expect(table.unattendedCount == 2)
    // When a waiter joins one, it does not count until that waiter leaves.
    let second = table.enter(key, as: "second")
    #expect(second.joined && table.unattendedCount == 1)
    #expect(table.leave(second) != nil)
    #expect(table.unattendedCount == 2)
    // When they end
    #expect(table.finish(first.flight).isEmpty)
    #expect(table.unattendedCount == 1)
    _ = table.finishAll()
    #expect(table.unattendedCount == 0 && table.flightCount == 0)
  }

  @Test func `leaving twice or after the end has no effect`() {
    var table = FlightTable<CacheKey, String>()
    let first = table.enter(key, as: "first")
    _ = table.enter(key, as: "second")
    #expect(table.leave(first) != nil)
    #expect(table.leave(first) == nil)
    _ = table.finish(first.flight)
    #expect(table.leave(first) == nil)
  }

  @Test func `a retired flight continues for its participants and admits no others`() {
    var table = FlightTable<CacheKey, String>()
    let first = table.enter(key, as: "first")
    #expect(table.joinableKeys == [key])
    table.retire(key)
    #expect(table.joinableKeys.isEmpty)
    let second = table.enter(key, as: "second")
    #expect(!second.joined && second.flight != first.flight)
    #expect(table.enter(key, as: "third").flight == second.flight)
    #expect(table.finish(first.flight) == ["first"])
    // The end of the retired flight does not end the flight that replaced it.
    #expect(table.enter(key, as: "fourth").joined)
    #expect(table.finish(second.flight).sorted() == ["fourth", "second", "third"])
  }

  @Test func `a retired flight is abandoned by its last participant`() {
    var table = FlightTable<CacheKey, String>()
    let first = table.enter(key, as: "first")
    table.retire(key)
    #expect(table.leave(first)?.abandoned == first.flight)
    #expect(table.flightCount == 0)
  }

  @Test func `a request after an abandoned flight starts another`() {
    var table = FlightTable<CacheKey, String>()
    let first = table.enter(key, as: "first")
    _ = table.leave(first)
    let second = table.enter(key, as: "second")
    #expect(!second.joined)
    // The cancelled work ends late and must not end the new flight.
    #expect(table.finish(first.flight).isEmpty)
    #expect(table.isRunning(second.flight))
    #expect(table.enter(key, as: "third").joined)
  }

  @Test func `a closed flight admits no participant, and its key starts another`() {
    // Given
    var table = FlightTable<CacheKey, String>()
    let first = table.enter(key, as: "first")
    // When
    table.close(first.flight)
    table.close(first.flight)
    let second = table.enter(key, as: "second")
    // Then
    #expect(!second.joined && !second.waits && second.flight != first.flight)
    #expect(table.enter(key, as: "third").flight == second.flight)
    #expect(table.finish(first.flight) == ["first"])
    #expect(table.finish(second.flight).sorted() == ["second", "third"])
  }

  @Test func `above the limit of closed flights for one key, the next flight waits`() {
    // Given
    var table = FlightTable<CacheKey, String>()
    let closed = (0..<FlightTable<CacheKey, String>.closedLimit).map { number in
      let entry = table.enter(key, as: "\(number)")
      table.close(entry.flight)
      return entry
    }
    // When
    let waiting = table.enter(key, as: "waiting")
    let other = table.enter(CacheKey(text: "http://a/2.png"), as: "other")
    // Then
    #expect(closed.allSatisfy { !$0.waits } && waiting.waits && !other.waits)
    #expect(table.enter(key, as: "joined").joined)
    #expect(table.takeStartable().isEmpty)
    _ = table.leave(closed[0])
    #expect(table.takeStartable() == [waiting.flight])
    #expect(table.takeStartable().isEmpty)
    #expect(table.finish(waiting.flight).sorted() == ["joined", "waiting"])
  }

  @Test
  func `a waiting flight is abandoned by its last participant, and the next one starts`() {
    // Given
    var table = FlightTable<CacheKey, String>()
    let closed = (0..<FlightTable<CacheKey, String>.closedLimit).map { number in
      let entry = table.enter(key, as: "\(number)")
      table.close(entry.flight)
      return entry
    }
    let waiting = table.enter(key, as: "waiting")
    // When
    #expect(table.leave(waiting)?.abandoned == waiting.flight)
    let next = table.enter(key, as: "next")
    _ = table.finish(closed[0].flight)
    // Then
    #expect(next.waits && table.takeStartable() == [next.flight])
  }
}
