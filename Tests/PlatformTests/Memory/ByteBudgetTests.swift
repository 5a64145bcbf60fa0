// ByteBudgetTests: leases of bytes, by one thread and by many.

import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Core

@Suite(.onOwnThreads) struct ByteBudgetTests {
  @Test func `leases never exceed the limit, and end with their last reference`() throws {
    let budget = ByteBudget(limit: 10)
    var first = budget.lease(6)
    #expect(first?.count == 6)
    #expect(budget.lease(5) == nil)
    let second = try #require(budget.lease(3))
    #expect((budget.used, budget.peak, budget.refused) == (9, 9, 1))
    // When the first ends
    first = nil
    // Then its bytes can be taken
    #expect(budget.used == 3)
    #expect(second.grow(by: 7))
    #expect(!second.grow(by: 1))
    #expect((second.count, budget.used, budget.peak, budget.refused) == (10, 10, 10, 2))
  }

  @Test func `nothing can be taken always, and more than the limit never`() {
    let budget = ByteBudget(limit: 5)
    let all = budget.lease(5)
    withExtendedLifetime(all) { #expect(budget.lease(0) != nil) }
    #expect(budget.lease(6) == nil && budget.lease(.max) == nil)
    let unlimited = ByteBudget.unlimited.lease(1 << 40)
    #expect(unlimited?.count == 1 << 40)
  }

  @Test func `a refused lease is noticed once, when bytes are returned`() throws {
    let budget = ByteBudget(limit: 4)
    let notices = Atomic<Int>(0)
    budget.observeReturns { notices.add(1, ordering: .relaxed) }
    var leases = [budget.lease(2), budget.lease(2)]
    #expect(budget.leaseOrNotice(1) == nil)
    #expect(budget.leaseOrNotice(1) == nil)
    #expect(notices.load(ordering: .relaxed) == 0)
    leases.removeLast()
    #expect(notices.load(ordering: .relaxed) == 1)
    // Without a refused lease, nothing is noticed
    leases.removeAll()
    #expect(notices.load(ordering: .relaxed) == 1)
    #expect(budget.leaseOrNotice(4) != nil)
  }

  @Test func `many threads take, wait and return, and none waits forever`() async throws {
    // Given eight threads that want more together than there is
    let budget = ByteBudget(limit: 100)
    let wake = Lock(0)
    budget.observeReturns { wake.withLock { $0 += 1 } }
    let isOver = Atomic<Int>(0)
    // When
    for seed in 0..<8 {
      try OwnThread.start(name: "taker", rank: .work) {
        var random = SeededGenerator(seed: UInt64(seed))
        for _ in 0..<2_000 {
          let count = Int.random(in: 1...100, using: &random)
          while true {
            let before = wake.withLock { $0 }
            if let lease = budget.leaseOrNotice(count) {
              if lease.count < 100, lease.grow(by: 1) {}
              break
            }
            // Bytes that are returned from now on change the number.
            while wake.withLock({ $0 }) == before, budget.used > 0 { sched_yield() }
          }
        }
        isOver.add(1, ordering: .sequentiallyConsistent)
      }
    }
    // Then
    try await eventually("all are done") { isOver.load(ordering: .sequentiallyConsistent) == 8 }
    #expect(budget.used == 0)
    #expect(budget.peak <= 100)
  }
}
