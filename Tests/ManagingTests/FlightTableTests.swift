// Tests of FlightTable: who may join what, and when work is abandoned.

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
    // Its end is not that of the flight that took its place.
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
    // The abandoned work ends late: it must not end the new flight.
    #expect(table.finish(first.flight).isEmpty)
    #expect(table.isRunning(second.flight))
    #expect(table.enter(key, "third").joined)
  }
}
