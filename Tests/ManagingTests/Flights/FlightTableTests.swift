// FlightTableTests: tests joining and leaving flights, and when their work is cancelled.

import Model
import Testing

@testable import Managing

struct FlightTableTests {
  private let key = CacheKey(text: "http://a/1.png")

  @Test func `the first starts a flight and later ones join it`() {
    var table = FlightTable<CacheKey, String>()
    let first = table.enter(key, "first")
    let second = table.enter(key, "second")
    #expect(!first.joined)
    #expect(second.joined)
    #expect(first.flight == second.flight)
    #expect(table.finish(first.flight).sorted() == ["first", "second"])
    #expect(table.flightCount == 0)
  }

  @Test func `other keys fly alone`() {
    var table = FlightTable<CacheKey, String>()
    let one = table.enter(key, "one")
    let other = table.enter(CacheKey(text: "http://a/2.png"), "other")
    #expect(!other.joined)
    #expect(one.flight != other.flight)
  }

  @Test func `only the last to leave abandons the flight`() {
    var table = FlightTable<CacheKey, String>()
    let first = table.enter(key, "first")
    let second = table.enter(key, "second")
    #expect(table.leave(first)?.abandoned == nil)
    #expect(table.leave(second)?.abandoned == second.flight)
    #expect(table.finish(first.flight).isEmpty)
  }

  @Test func `a detached flight counts as unattended while nobody waits for it`() {
    // Given
    var table = FlightTable<CacheKey, String>()
    let first = table.enter(key, "first", isDetached: true)
    let other = table.enter(CacheKey(text: "http://a/2.png"), "other", isDetached: true)
    #expect(table.unattendedCount == 0)
    // When they leave, then both count.
    #expect(table.leave(first)?.abandoned == nil && table.leave(other)?.abandoned == nil)
    #expect(table.unattendedCount == 2)
    // When a waiter joins one, it does not count until that waiter leaves.
    let second = table.enter(key, "second")
    #expect(second.joined && table.unattendedCount == 1)
    #expect(table.leave(second) != nil)
    #expect(table.unattendedCount == 2)
    // When they end
    #expect(table.finish(first.flight).isEmpty)
    #expect(table.unattendedCount == 1)
    _ = table.finishAll()
    #expect(table.unattendedCount == 0 && table.flightCount == 0)
  }

  @Test func `leaving twice, or after the end, does nothing`() {
    var table = FlightTable<CacheKey, String>()
    let first = table.enter(key, "first")
    _ = table.enter(key, "second")
    #expect(table.leave(first) != nil)
    #expect(table.leave(first) == nil)
    _ = table.finish(first.flight)
    #expect(table.leave(first) == nil)
  }

  @Test func `a retired flight goes on for those it has, and takes nobody else`() {
    var table = FlightTable<CacheKey, String>()
    let first = table.enter(key, "first")
    #expect(table.joinableKeys == [key])
    table.retire(key)
    #expect(table.joinableKeys.isEmpty)
    let second = table.enter(key, "second")
    #expect(!second.joined && second.flight != first.flight)
    #expect(table.enter(key, "third").flight == second.flight)
    #expect(table.finish(first.flight) == ["first"])
    // The end of the retired flight does not end the flight that replaced it.
    #expect(table.enter(key, "fourth").joined)
    #expect(table.finish(second.flight).sorted() == ["fourth", "second", "third"])
  }

  @Test func `a retired flight is abandoned by its last waiter`() {
    var table = FlightTable<CacheKey, String>()
    let first = table.enter(key, "first")
    table.retire(key)
    #expect(table.leave(first)?.abandoned == first.flight)
    #expect(table.flightCount == 0)
  }

  @Test func `whoever asks after an abandoned flight starts another`() {
    var table = FlightTable<CacheKey, String>()
    let first = table.enter(key, "first")
    _ = table.leave(first)
    let second = table.enter(key, "second")
    #expect(!second.joined)
    // The cancelled work ends late and must not end the new flight.
    #expect(table.finish(first.flight).isEmpty)
    #expect(table.isRunning(second.flight))
    #expect(table.enter(key, "third").joined)
  }

  @Test func `a closed flight takes no one else, and its key starts another`() {
    // Given
    var table = FlightTable<CacheKey, String>()
    let first = table.enter(key, "first")
    // When
    table.close(first.flight)
    table.close(first.flight)
    let second = table.enter(key, "second")
    // Then
    #expect(!second.joined && !second.waits && second.flight != first.flight)
    #expect(table.enter(key, "third").flight == second.flight)
    #expect(table.finish(first.flight) == ["first"])
    #expect(table.finish(second.flight).sorted() == ["second", "third"])
  }

  @Test func `behind so many closed flights of one key the next waits for one to end`() {
    // Given
    var table = FlightTable<CacheKey, String>()
    let closed = (0..<FlightTable<CacheKey, String>.closedLimit).map { number in
      let entry = table.enter(key, "\(number)")
      table.close(entry.flight)
      return entry
    }
    // When
    let waiting = table.enter(key, "waiting")
    let other = table.enter(CacheKey(text: "http://a/2.png"), "other")
    // Then
    #expect(closed.allSatisfy { !$0.waits } && waiting.waits && !other.waits)
    #expect(table.enter(key, "joined").joined)
    #expect(table.takeStartable().isEmpty)
    _ = table.leave(closed[0])
    #expect(table.takeStartable() == [waiting.flight])
    #expect(table.takeStartable().isEmpty)
    #expect(table.finish(waiting.flight).sorted() == ["joined", "waiting"])
  }

  @Test
  func `a flight that waits to start is abandoned by its last waiter, and the next one starts`() {
    // Given
    var table = FlightTable<CacheKey, String>()
    let closed = (0..<FlightTable<CacheKey, String>.closedLimit).map { number in
      let entry = table.enter(key, "\(number)")
      table.close(entry.flight)
      return entry
    }
    let waiting = table.enter(key, "waiting")
    // When
    #expect(table.leave(waiting)?.abandoned == waiting.flight)
    let next = table.enter(key, "next")
    _ = table.finish(closed[0].flight)
    // Then
    #expect(next.waits && table.takeStartable() == [next.flight])
  }
}
