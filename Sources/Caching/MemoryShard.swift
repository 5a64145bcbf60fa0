// MemoryShard: one of the memory tier's tables, with a lock of its own.

import Model
import Platform

/// A part of the memory tier: variants by key, in the order of eviction.
///
/// What is taken out is handed back to the caller, so that its memory is released after the lock.
final class MemoryShard: Sendable {
  /// A variant with what it counts for.
  struct Entry {
    let variant: Variant
    let cost: Int
  }

  private struct State {
    var slots: [CacheKey: SieveQueue.Slot] = [:]
    var entries: [Entry?] = []
    var queue = SieveQueue()
    var hits = 0
    var misses = 0

    mutating func takeOut(_ slot: SieveQueue.Slot) -> Entry? {
      guard let entry = entries[slot] else { return nil }
      entries[slot] = nil
      queue.remove(slot)
      slots[entry.variant.key] = nil
      return entry
    }
  }

  private let state = Lock(State())

  /// What is kept under `key`; counted.
  func variant(for key: CacheKey) -> Variant? {
    state.withLock { state in
      guard let slot = state.slots[key] else {
        state.misses += 1
        return nil
      }
      state.hits += 1
      state.queue.touch(slot)
      return state.entries[slot]?.variant
    }
  }

  /// What is kept under `key`; not counted.
  func peek(_ key: CacheKey) -> Variant? {
    state.withLock { state in state.slots[key].flatMap { state.entries[$0]?.variant } }
  }

  /// Keeps an entry and hands back the one it replaces.
  func insert(_ entry: Entry) -> Entry? {
    state.withLock { state in
      let replaced = state.slots[entry.variant.key].flatMap { state.takeOut($0) }
      let slot = state.queue.insert()
      if slot == state.entries.count {
        state.entries.append(entry)
      } else {
        state.entries[slot] = entry
      }
      state.slots[entry.variant.key] = slot
      return replaced
    }
  }

  /// Takes out what is kept under `key`.
  func remove(_ key: CacheKey) -> Entry? {
    state.withLock { state in state.slots[key].flatMap { state.takeOut($0) } }
  }

  /// Takes out every variant whose key is meant.
  func removeAll(where isMeant: (CacheKey) -> Bool) -> [Entry] {
    state.withLock { state in
      state.entries.indices.compactMap { slot in
        guard let key = state.entries[slot]?.variant.key, isMeant(key) else { return nil }
        return state.takeOut(slot)
      }
    }
  }

  /// Takes out what is to go next, if the queue's hand finds it in few steps.
  func evict() -> Entry? {
    state.withLock { state in state.queue.victim().flatMap { state.takeOut($0) } }
  }

  /// Look-ups so far.
  var lookups: (hits: Int, misses: Int) {
    state.withLock { ($0.hits, $0.misses) }
  }
}
