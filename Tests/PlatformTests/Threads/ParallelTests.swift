// ParallelTests: parts of a computation on several threads.

import Core
import Glibc
import Synchronization
import TestSupport
import Testing

@Suite(.onOwnThreads) struct ParallelTests {
  private struct Failure: Error, Equatable {
    let part: Int
  }

  @Test(arguments: 0...5)
  func `each part runs once`(count: Int) {
    for _ in 0..<50 {
      let runs = Lock([Int](repeating: 0, count: count))
      Parallel.run(count) { part in runs.withLock { $0[part] += 1 } }
      #expect(runs.withLock { $0 } == [Int](repeating: 1, count: count))
    }
  }

  @Test func `parts run at the same time`() {
    let arrived = Atomic<Int>(0)
    Parallel.run(3) { _ in
      arrived.wrappingAdd(1, ordering: .relaxed)
      // Ends only if all parts are there.
      while arrived.load(ordering: .relaxed) < 3 { sched_yield() }
    }
    #expect(arrived.load(ordering: .relaxed) == 3)
  }

  @Test func `all parts end before the first failure is thrown`() {
    let ended = Atomic<Int>(0)
    #expect(throws: Failure(part: 1)) {
      try Parallel.run(4) { part throws(Failure) in
        defer { ended.wrappingAdd(1, ordering: .relaxed) }
        if part == 1 || part == 3 { throw Failure(part: part) }
      }
    }
    #expect(ended.load(ordering: .relaxed) == 4)
  }

  @Test func `parts cover a range without gaps`() {
    for total in [0, 1, 7, 100] {
      for count in 1...5 {
        let parts = (0..<count).map { Parallel.part($0, of: count, in: 10..<10 + total) }
        #expect(parts.flatMap { Array($0) } == Array(10..<10 + total))
      }
    }
    #expect(Parallel.count(100, atLeast: 30, 8) == 3)
    #expect(Parallel.count(100, atLeast: 30, 2) == 2)
    #expect(Parallel.count(5, atLeast: 30, 2) == 1)
  }
}
