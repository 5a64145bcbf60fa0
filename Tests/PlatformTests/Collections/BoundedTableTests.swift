// BoundedTableTests: tests of BoundedTable against an array of pairs.

import Core
import TestSupport
import Testing

@Suite struct BoundedTableTests {
  @Test(arguments: 0..<10 as Range<UInt64>)
  func `a random sequence of operations has the results of an array of pairs`(_ seed: UInt64) {
    // Given
    let limit = 1 + Int(seed) * 3
    var random = SeededGenerator(seed: seed)
    var table = BoundedTable<Int, Int>(limit: limit)
    var model = PairModel(limit: limit)
    for step in 0..<5_000 {
      let key = Int.random(in: 0..<2 * limit, using: &random)
      // When
      switch Int.random(in: 0..<20, using: &random) {
      case 0..<7:
        table[key] = step
        model.set(step, for: key)
      case 7..<11:
        table.setNewest(step, for: key)
        _ = model.remove(key)
        model.set(step, for: key)
      case 11..<13: #expect(table.removeValue(forKey: key) == model.remove(key))
      case 13..<14:
        table[key] = nil
        _ = model.remove(key)
      case 14..<15:
        let oldest = model.pairs.isEmpty ? nil : model.pairs.removeFirst()
        #expect(table.removeOldest().map { [$0.key, $0.value] } == oldest.map { [$0.0, $0.1] })
      case 15 where step.isMultiple(of: 10):
        let count = model.pairs.count
        model.pairs.removeAll { ($0.0 + $0.1).isMultiple(of: 3) }
        #expect(
          table.removeAll { ($0 + $1).isMultiple(of: 3) } == count - model.pairs.count)
      case 16 where step.isMultiple(of: 100):
        table.removeAll()
        model.pairs = []
      default: #expect(table[key] == model.pairs.first { $0.0 == key }?.1)
      }
      // Then
      guard table.count == model.pairs.count, table.isEmpty == model.pairs.isEmpty,
        table.map(\.key) == model.pairs.map(\.0), table.map(\.value) == model.pairs.map(\.1)
      else {
        Issue.record("seed \(seed), step \(step): \(Array(table)), not \(model.pairs)")
        return
      }
    }
  }

  @Test func `a new key evicts the oldest, and a known key keeps its position`() {
    // Given
    var table = BoundedTable<String, Int>(limit: 2)
    table["a"] = 1
    table["b"] = 2
    // When
    table["a"] = 3
    table["c"] = 4
    // Then
    #expect(table.map(\.key) == ["b", "c"])
    table.setNewest(5, for: "b")
    #expect(table.map(\.key) == ["c", "b"])
    #expect(table["a"] == nil && table["b"] == 5)
  }

  @Test func `a limit below one counts as one`() {
    var table = BoundedTable<Int, Int>(limit: 0)
    table[1] = 1
    table[2] = 2
    #expect(table.map(\.key) == [2])
  }

  @Test func `a removed entry is released`() {
    final class Token {}
    // Given
    var table = BoundedTable<Int, Token>(limit: 1)
    weak var evicted: Token?
    weak var removed: Token?
    do {
      let tokens = [Token(), Token()]
      evicted = tokens[0]
      removed = tokens[1]
      // When
      table[1] = tokens[0]
      table[2] = tokens[1]
    }
    // Then
    #expect(evicted == nil && removed != nil)
    table[2] = nil
    #expect(removed == nil)
  }
}

/// Pairs in the order of a table, looked for one by one.
private struct PairModel {
  let limit: Int
  var pairs: [(Int, Int)] = []

  init(limit: Int) { self.limit = limit }

  mutating func set(_ value: Int, for key: Int) {
    if let known = pairs.firstIndex(where: { $0.0 == key }) {
      pairs[known].1 = value
    } else {
      if pairs.count == limit { pairs.removeFirst() }
      pairs.append((key, value))
    }
  }

  mutating func remove(_ key: Int) -> Int? {
    pairs.firstIndex { $0.0 == key }.map { pairs.remove(at: $0).1 }
  }
}
