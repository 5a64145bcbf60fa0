// BoundedAtomic: a count of many threads' that never passes its limit.

import Synchronization

extension Atomic where Value == Int {
  /// Adds `amount`, unless that would be above `limit`; tells whether it did.
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
