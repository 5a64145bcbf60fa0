// Atomic+Bounded: a shared counter that never exceeds its limit.

import Synchronization

extension Atomic where Value == Int {
  /// Adds `amount` unless the sum would exceed `limit`. Returns whether it did.
  func add(_ amount: Int, upTo limit: Int) -> Bool {
    var current = load(ordering: .relaxed)
    while current + amount <= limit {
      let (exchanged, original) = weakCompareExchange(
        expected: current, desired: current + amount, ordering: .relaxed)
      if exchanged { return true }
      current = original
    }
    return false
  }
}
