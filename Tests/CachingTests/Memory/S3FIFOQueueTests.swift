// S3FIFOQueueTests: the memory tier's eviction order, alone and compared with a naive model.

import Core
import TestSupport
import Testing

@testable import Caching

struct S3FIFOQueueTests {
  private func entry(_ number: Int, cost: Int = 1) -> MemoryEntry {
    MemoryEntry(Sample.variant(number, bytes: []), cost: cost)
  }

  private func numbers(_ entries: [MemoryEntry]) -> [String] {
    entries.map { String($0.variant.key.url.split(separator: "/").last?.dropLast(4) ?? "") }
  }

  @Test func `a removed entry is not remembered, and its slot is reused`() {
    var queue = S3FIFOQueue()
    let slot = queue.insert(entry(1, cost: 5))
    #expect(queue.remove(slot)?.wasMain == false)
    #expect(queue.remove(slot) == nil)
    #expect(queue.cost == 0)
    let again = queue.insert(entry(1, cost: 7))
    #expect(again == slot && queue.cost == 7)
    #expect(queue.remove(again)?.wasMain == false)
  }

  @Test func `an eviction succeeds even if every entry is in use`() {
    var queue = S3FIFOQueue()
    let entries = (0..<5_000).map { entry($0) }
    for entry in entries { _ = queue.insert(entry) }
    for _ in 0..<5_000 {
      for entry in entries.prefix(100) { entry.uses = MemoryEntry.maximumUses }
      #expect(queue.evict() != nil)
    }
    #expect(queue.count == 0)
  }

  /// S3-FIFO as its paper describes it, in arrays.
  private struct Naive {
    var small: [(name: Int, cost: Int)] = []
    var main: [(name: Int, cost: Int)] = []
    var ghosts: [Int] = []
    var uses: [Int: Int] = [:]

    var cost: Int { (small + main).reduce(0) { $0 + $1.cost } }

    mutating func insert(_ name: Int, cost: Int) {
      uses[name] = 0
      if let place = ghosts.lastIndex(of: name) {
        ghosts.remove(at: place)
        main.append((name, cost))
      } else {
        small.append((name, cost))
      }
    }

    mutating func remove(_ name: Int) {
      small.removeAll { $0.name == name }
      main.removeAll { $0.name == name }
    }

    mutating func evict() -> Int? {
      while true {
        let smallCost = small.reduce(0) { $0 + $1.cost }
        if main.isEmpty || smallCost * 10 >= cost {
          guard let first = small.first else { return nil }
          small.removeFirst()
          if uses[first.name, default: 0] < 2 {
            ghosts.append(first.name)
            ghosts.removeFirst(max(ghosts.count - small.count - main.count, 0))
            return first.name
          }
          uses[first.name] = 0
          main.append(first)
        } else {
          let first = main.removeFirst()
          if uses[first.name, default: 0] == 0 { return first.name }
          uses[first.name, default: 0] -= 1
          main.append(first)
        }
      }
    }
  }

  @Test(arguments: [1, 2, 3])
  func `random operations evict the same entries as a naive S3-FIFO`(seed: Int) {
    var random = SeededGenerator(seed: UInt64(seed))
    var queue = S3FIFOQueue()
    var naive = Naive()
    var kept: [Int: (entry: MemoryEntry, slot: S3FIFOQueue.Slot)] = [:]
    var names: [CacheKey: Int] = [:]
    var evictions = 0
    for step in 0..<20_000 {
      // Squared, so that some keys are requested far more often than others.
      let chance = Double.random(in: 0..<1, using: &random)
      let name = Int(chance * chance * 200)
      if let (entry, slot) = kept[name] {
        if Int.random(in: 0..<50, using: &random) == 0 {
          _ = queue.remove(slot)
          naive.remove(name)
          kept[name] = nil
        } else {
          entry.touch()
          naive.uses[name] = min(naive.uses[name, default: 0] + 1, 3)
        }
        continue
      }
      let cost = Int.random(in: 1...20, using: &random)
      while queue.cost + cost > 400 {
        let victim = queue.evict().flatMap { names[$0.variant.key] }
        guard let victim, victim == naive.evict() else {
          Issue.record("step \(step): another one")
          return
        }
        kept[victim] = nil
        evictions += 1
      }
      let entry = entry(name, cost: cost)
      names[entry.variant.key] = name
      kept[name] = (entry, queue.insert(entry))
      naive.insert(name, cost: cost)
      if queue.cost != naive.cost || queue.count != kept.count {
        Issue.record("step \(step): \(queue.cost) instead of \(naive.cost)")
        return
      }
    }
    #expect(evictions > 2_000)
  }
}
