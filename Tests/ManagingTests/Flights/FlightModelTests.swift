// FlightModelTests: tests FlightTable with random steps against a naive model.

import Core
import TestSupport
import Testing

@testable import Managing

@Suite(.onOwnThreads) struct FlightModelTests {
  /// A flight in the model.
  private struct Running {
    let key: Int
    var isDetached: Bool
    var isRetired = false
    var isClosed = false
    var waits = false
    var waiting: Set<Int> = []
  }

  @Test(arguments: [1, 2, 3])
  func `in 100,000 random steps no waiter is lost or answered twice, and no flight leaks`(
    seed: Int
  ) {
    var random = SeededGenerator(seed: UInt64(seed))
    var table = FlightTable<Int, Int>()
    var running: [Int: Running] = [:]
    var entries: [Int: FlightTable<Int, Int>.Entry] = [:]
    var answered: Set<Int> = []
    var nextWaiter = 0

    /// Checks that exactly the waiters of a flight get its result, each for the first time.
    func answer(_ waiters: [Int], of flight: Int) {
      let expected = running.removeValue(forKey: flight)?.waiting
      #expect(Set(waiters) == expected)
      #expect(waiters.count == expected?.count)
      for waiter in waiters { #expect(answered.insert(waiter).inserted) }
    }

    for _ in 0..<100_000 {
      switch Int.random(in: 0..<1_000, using: &random) {
      case 0..<500:
        let key = Int.random(in: 0..<12, using: &random)
        let isDetached = Int.random(in: 0..<20, using: &random) == 0
        let joinable = running.first { $0.value.key == key && !$0.value.isRetired }?.key
        // Some may only join.
        let joined =
          Bool.random(using: &random)
          ? table.join(key, as: nextWaiter, isDetached: isDetached) : nil
        if joinable == nil { #expect(joined == nil) }
        let entry = joined ?? table.enter(key, as: nextWaiter, isDetached: isDetached)
        #expect(entry.joined == (joinable != nil))
        if let joinable { #expect(entry.flight == joinable) }
        running[entry.flight, default: Running(key: key, isDetached: false)].waiting
          .insert(nextWaiter)
        if !entry.joined {
          let closed = running.values.count { $0.key == key && $0.isClosed }
          #expect(entry.waits == (closed >= FlightTable<Int, Int>.closedLimit))
          running[entry.flight]?.waits = entry.waits
        }
        if isDetached { running[entry.flight]?.isDetached = true }
        entries[nextWaiter] = entry
        nextWaiter += 1
      case 500..<850:
        // The waiter may already have its result, or have left before.
        guard nextWaiter > 0 else { continue }
        let waiter = max(nextWaiter - Int.random(in: 1...60, using: &random), 0)
        guard let entry = entries[waiter] else { continue }
        let wasWaiting = running[entry.flight]?.waiting.remove(waiter) != nil
        let departure = table.leave(entry)
        #expect((departure != nil) == wasWaiting)
        guard let departure else { continue }
        #expect(departure.waiter == waiter)
        #expect(answered.insert(waiter).inserted)
        let isAbandoned =
          running[entry.flight].map { $0.waiting.isEmpty && !$0.isDetached } ?? false
        #expect(departure.abandoned == (isAbandoned ? entry.flight : nil))
        #expect(table.isRunning(entry.flight) == !isAbandoned)
        if isAbandoned { running[entry.flight] = nil }
      case 850..<870:
        let key = Int.random(in: 0..<12, using: &random)
        table.retire(key)
        for (flight, _) in running.filter({ $0.value.key == key }) {
          running[flight]?.isRetired = true
        }
      case 870..<900:
        guard let flight = running.filter({ !$0.value.waits }).keys.max() else { continue }
        table.close(flight)
        running[flight]?.isClosed = true
        running[flight]?.isRetired = true
      case 900..<999:
        guard let flight = running.filter({ !$0.value.waits }).keys.min() else { continue }
        answer(table.finish(flight), of: flight)
        #expect(table.finish(flight).isEmpty, "a second result finds no waiter")
      default:
        for ended in table.finishAll() { answer(ended.waiters, of: ended.flight) }
        #expect(running.isEmpty)
      }
      for flight in table.takeStartable() {
        #expect(running[flight]?.waits == true, "each starts once")
        running[flight]?.waits = false
      }
      for key in Set(running.values.filter(\.waits).map(\.key)) {
        let closed = running.values.count { $0.key == key && $0.isClosed }
        #expect(closed >= FlightTable<Int, Int>.closedLimit, "no one waits for nothing")
      }
      #expect(table.flightCount == running.count)
      #expect(table.joinableKeys.count == running.values.count { !$0.isRetired })
      #expect(table.unattendedCount == running.values.count { $0.waiting.isEmpty })
    }
    for flight in Array(running.keys) { answer(table.finish(flight), of: flight) }
    #expect(answered.count == nextWaiter)
    #expect(table.flightCount == 0)
    #expect(table.waiterCount == 0 && table.unattendedCount == 0)
  }
}
