// Grammar: texts of random words, in which characters are changed.

import TestSupport

extension SeededGenerator {
  /// Returns up to `most` words in a row.
  mutating func sentence(of words: [String], most: Int) -> String {
    (0..<Int.random(in: 0...most, using: &self))
      .map { _ in words.randomElement(using: &self) ?? "" }.joined()
  }

  /// Returns one of the values.
  mutating func pick<Value>(_ first: Value, _ others: Value...) -> Value {
    let index = Int.random(in: 0...others.count, using: &self)
    return index == 0 ? first : others[index - 1]
  }

  /// Returns a number within a range.
  mutating func number(_ range: ClosedRange<Int>) -> Int { .random(in: range, using: &self) }

  /// Returns `true` one time of `count`.
  mutating func isOne(of count: Int) -> Bool { number(1...count) == 1 }

  /// Returns random bytes.
  mutating func bytes(_ count: Int) -> [UInt8] {
    (0..<count).map { _ in .random(in: 0...255, using: &self) }
  }
}
