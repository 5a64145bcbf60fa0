// DequeTests: tests of Deque against an array.

import Core
import TestSupport
import Testing

@Suite struct DequeTests {
  @Test(arguments: 0..<10 as Range<UInt64>)
  func `a random sequence of operations has the results of an array`(_ seed: UInt64) {
    // Given
    var random = SeededGenerator(seed: seed)
    var deque = Deque<Int>()
    var model: [Int] = []
    for step in 0..<10_000 {
      // When the queue grows for a while, then shrinks for a while
      let mayGrow = (step / 1_000).isMultiple(of: 2)
      let index = Int.random(in: 0...model.count, using: &random)
      switch Int.random(in: 0..<(mayGrow ? 12 : 9), using: &random) {
      case 0, 9, 10:
        deque.append(step)
        model.append(step)
      case 1, 11:
        deque.insert(step, at: index)
        model.insert(step, at: index)
      case 2, 3: #expect(deque.popFirst() == (model.isEmpty ? nil : model.removeFirst()))
      case 4: #expect(deque.popLast() == model.popLast())
      case 5, 6:
        guard index < model.count else { continue }
        #expect(deque.remove(at: index) == model.remove(at: index))
      case 7:
        guard index < model.count else { continue }
        deque[index] = -step
        model[index] = -step
      default:
        guard step.isMultiple(of: 50) else { continue }
        deque.removeAll { $0.isMultiple(of: 7) }
        model.removeAll { $0.isMultiple(of: 7) }
      }
      // Then
      guard deque.count == model.count, deque.elementsEqual(model) else {
        Issue.record("seed \(seed), step \(step): \(Array(deque)), not \(model)")
        return
      }
    }
    #expect(deque == Deque(model))
    #expect(deque.first == model.first && deque.last == model.last)
  }

  @Test func `a removed element is released`() {
    final class Token {}
    // Given
    var deque = Deque<Token>()
    weak var first: Token?
    weak var removed: Token?
    weak var last: Token?
    do {
      let tokens = [Token(), Token(), Token(), Token()]
      first = tokens[0]
      removed = tokens[1]
      last = tokens[3]
      deque = Deque(tokens)
    }
    #expect(first != nil && removed != nil && last != nil)
    // When
    _ = deque.popFirst()
    deque.remove(at: 0)
    _ = deque.popLast()
    // Then
    #expect(deque.count == 1)
    #expect(first == nil && removed == nil && last == nil)
  }

  @Test func `a copy is independent of the original`() {
    var deque = Deque(0..<20)
    let copy = deque
    while deque.popFirst() != nil {}
    deque.append(-1)
    #expect(copy.elementsEqual(0..<20))
    #expect(Array(deque) == [-1])
  }
}
