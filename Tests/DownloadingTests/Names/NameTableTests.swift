// NameTableTests: tests of NameTable, without threads or clocks.

import Core
import TestSupport
import Testing

@testable import Downloading

@Suite(.onOwnThreads) struct NameTableTests {
  private let start = ContinuousClock.now
  private let addresses = NameAnswer.success([.v4(0x0102_0304)])
  private let unknown = NameAnswer.failure(.unknown("no such name"))

  private func makeTable(
    threads: Int = 8, waiting: Int = 40, remembered: Int = 100, lifetime: Duration = .seconds(60)
  ) -> NameTable {
    NameTable(
      NameTable.Limits(
        threads: threads, waiting: waiting, shares: 4, remembered: remembered,
        deadline: .seconds(5),
        lifetime: lifetime, negativeLifetime: .seconds(3)))
  }

  private func at(_ seconds: Double) -> ContinuousClock.Instant { start + .seconds(seconds) }

  /// Looks a name up for a load that waits for five seconds.
  private func ask(
    _ table: inout NameTable, _ name: String, _ id: Int, at seconds: Double = 0
  ) -> [NameTable.Action] {
    table.lookUp(name, for: id, until: at(seconds + 5), now: at(seconds))
  }

  @Test func `further names wait for a thread, in order of arrival`() {
    var table = makeTable(threads: 1)
    #expect(ask(&table, "a.a", 1) == [.resolve("a.a")])
    #expect(ask(&table, "b.b", 2) == [] && ask(&table, "c.c", 3) == [])
    #expect(table.runningCount == 1 && table.waitingCount == 2)
    #expect(
      table.resolved("a.a", unknown, now: at(1)) == [.answer(1, unknown), .resolve("b.b")])
    #expect(
      table.resolved("b.b", addresses, now: at(1)) == [.answer(2, addresses), .resolve("c.c")])
    #expect(table.runningCount == 1 && table.waitingCount == 0)
  }

  @Test func `names of one domain take a quarter of the threads and of the queue`() {
    // Given: two threads and five waiting names a domain
    var table = makeTable(threads: 8, waiting: 20)
    for id in 0..<2 { #expect(ask(&table, "\(id).slow.example", id).count == 1) }
    for id in 2..<7 { #expect(ask(&table, "\(id).slow.example", id) == []) }
    #expect(ask(&table, "7.slow.example", 7) == [.answer(7, .failure(.full))])
    // Then
    #expect(ask(&table, "a.other.example", 8) == [.resolve("a.other.example")])
    #expect(
      table.resolved("0.slow.example", unknown, now: at(1)) == [
        .answer(0, unknown), .resolve("2.slow.example"),
      ])
    #expect(ask(&table, "7.slow.example", 7) == [])
  }

  @Test func `a name that does not exist is remembered briefly, and a passing failure not at all`()
  {
    var table = makeTable()
    _ = ask(&table, "a.a", 1)
    _ = table.resolved("a.a", unknown, now: at(0))
    #expect(ask(&table, "a.a", 2, at: 2.9) == [.answer(2, unknown)])
    #expect(ask(&table, "a.a", 3, at: 3) == [.resolve("a.a")])
    _ = table.resolved("a.a", .failure(.temporary("try again")), now: at(3))
    #expect(ask(&table, "a.a", 4, at: 3) == [.resolve("a.a")])
  }

  @Test func `each load waits until its own deadline, and the name counts as stuck`() {
    // Given
    var table = makeTable()
    _ = ask(&table, "a.a", 1)
    _ = ask(&table, "a.a", 2, at: 3)
    #expect(table.stuckCount(now: at(4.9)) == 0)
    #expect(table.expire(now: at(4.9)) == [])
    #expect(table.nextDeadline == at(5))
    // When
    #expect(table.expire(now: at(5)) == [.answer(1, .failure(.late))])
    // Then: no further load waits for it at present
    #expect(table.stuckCount(now: at(5)) == 1 && table.runningCount == 1)
    #expect(ask(&table, "a.a", 3, at: 6) == [.answer(3, .failure(.late))])
    #expect(table.nextDeadline == at(8))
    #expect(table.expire(now: at(8)) == [.answer(2, .failure(.late))])
    #expect(table.nextDeadline == nil)
    // Later ones wait, but for the same thread.
    #expect(ask(&table, "a.a", 4, at: 12) == [])
    // An answer is welcome at any time.
    #expect(table.resolved("a.a", addresses, now: at(13)) == [.answer(4, addresses)])
    #expect(ask(&table, "a.a", 5, at: 13) == [.answer(5, addresses)])
    #expect(table.stuckCount(now: at(99)) == 0 && table.runningCount == 0)
  }

  @Test func `a load that is short of time says nothing about the resolver`() {
    var table = makeTable()
    _ = ask(&table, "a.a", 1)
    _ = table.lookUp("a.a", for: 2, until: at(1), now: at(0))
    #expect(table.expire(now: at(1)) == [.answer(2, .failure(.late))])
    #expect(ask(&table, "a.a", 3, at: 1) == [])
  }

  @Test func `names that get no thread until their deadline are dropped`() {
    var table = makeTable(threads: 1)
    _ = ask(&table, "a.a", 1)
    _ = ask(&table, "b.b", 2)
    _ = ask(&table, "c.c", 3, at: 3)
    #expect(table.expire(now: at(5)) == [.answer(1, .failure(.late)), .answer(2, .failure(.late))])
    #expect(table.waitingCount == 1)
    #expect(table.resolved("a.a", addresses, now: at(6)) == [.resolve("c.c")])
    // It was never looked up.
    #expect(table.resolved("c.c", addresses, now: at(6)) == [.answer(3, addresses)])
    #expect(ask(&table, "b.b", 4, at: 6) == [.resolve("b.b")])
  }

  @Test func `a load that leaves gets no answer, and its look-up is not wasted`() {
    var table = makeTable(threads: 1)
    _ = ask(&table, "a.a", 1)
    _ = ask(&table, "b.b", 2)
    table.leave(1)
    table.leave(2)
    table.leave(99)
    #expect(table.runningCount == 1 && table.waitingCount == 0)
    #expect(table.resolved("a.a", addresses, now: at(1)) == [])
    #expect(ask(&table, "a.a", 3, at: 2) == [.answer(3, addresses)])
  }

  @Test(arguments: [4, 1_000])
  func `names of domains that never answer delay no other name`(domains: Int) {
    var table = NameTable(NameTable.Limits())
    for id in 0..<1_000 { _ = ask(&table, "n\(id).dead.example\(id % domains)", id) }
    #expect(ask(&table, "a.other.example", 1_000) == [.resolve("a.other.example")])
  }

  @Test func `expired addresses serve while a look-up hangs, has no thread, or fails in passing`() {
    // Given
    var table = makeTable(threads: 2)
    for (id, name) in ["a.a", "b.b", "c.c"].enumerated() {
      _ = ask(&table, name, id)
      _ = table.resolved(name, addresses, now: at(0))
    }
    table.shorten("c.c")
    // Then
    #expect(ask(&table, "a.a", 3, at: 61) == [.resolve("a.a")])
    #expect(ask(&table, "a.a", 4, at: 61.9) == [])
    #expect(ask(&table, "a.a", 5, at: 62) == [.answer(5, addresses)])
    _ = ask(&table, "d.d", 6, at: 62)
    #expect(ask(&table, "b.b", 7, at: 62) == [.answer(7, addresses)])
    #expect(ask(&table, "c.c", 8, at: 62) == [], "its addresses were refused")
    #expect(table.expire(now: at(66)) == [.answer(3, addresses)])
    #expect(
      table.resolved("a.a", .failure(.temporary("?")), now: at(66))
        == [.answer(4, addresses), .resolve("c.c")])
    #expect(ask(&table, "b.b", 9, at: 60 + 3_600) == [])
  }

  @Test func `with a lifetime of 0 no answer is remembered`() {
    var table = makeTable(lifetime: .zero)
    for answer in [addresses, unknown] {
      #expect(ask(&table, "a.a", 1) == [.resolve("a.a")])
      #expect(table.resolved("a.a", answer, now: at(0)) == [.answer(1, answer)])
    }
    #expect(table.rememberedCount == 0)
  }

  @Test func `in a random schedule each load is answered once, and every limit holds`() {
    var random = SeededGenerator(seed: 20_261_123)
    var table = makeTable(threads: 4, waiting: 12, remembered: 5, lifetime: .seconds(4))
    var now = start
    var waiting: Set<Int> = []
    var running: Set<String> = []
    var answered = 0

    func apply(_ actions: [NameTable.Action]) {
      for action in actions {
        switch action {
        case .resolve(let name): #expect(running.insert(name).inserted)
        case .answer(let id, _):
          #expect(waiting.remove(id) != nil)
          answered += 1
        }
      }
    }

    for id in 1...20_000 {
      now += .milliseconds(Int.random(in: 0...300, using: &random))
      switch Int.random(in: 0..<10, using: &random) {
      case 0..<5:
        let name =
          "\(Int.random(in: 0..<5, using: &random)).\(Int.random(in: 0..<4, using: &random)).example"
        waiting.insert(id)
        apply(table.lookUp(name, for: id, until: now + .seconds(5), now: now))
      case 5..<8:
        guard let name = running.sorted().randomElement(using: &random) else { continue }
        running.remove(name)
        apply(table.resolved(name, Bool.random(using: &random) ? addresses : unknown, now: now))
      case 8:
        guard let left = waiting.sorted().randomElement(using: &random) else { continue }
        waiting.remove(left)
        table.leave(left)
      default: apply(table.expire(now: now))
      }
      #expect(running.count == table.runningCount && running.count <= 4)
      #expect(table.waitingCount <= 12 && table.rememberedCount <= 5)
      let domains = Dictionary(grouping: running) { $0.split(separator: ".").suffix(2) }
      #expect(domains.values.allSatisfy { $0.count == 1 })
    }
    for name in running { apply(table.resolved(name, unknown, now: now)) }
    apply(table.expire(now: now + .seconds(9)))
    #expect(waiting.isEmpty && table.waitingCount == 0)
    #expect(answered > 5_000)
  }
}
