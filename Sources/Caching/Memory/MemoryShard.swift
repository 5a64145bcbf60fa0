// MemoryShard: a shard of the memory tier, with its own lock.

import Model
import Platform

/// A shard of the memory tier: entries by key, each with its slot in the eviction queue. Only the
/// holder of the queue's lock changes a shard. Readers wait for one change or look-up at most, or
/// for a copy of all `entries`.
final class MemoryShard: Sendable {
  /// An entry and its slot in the eviction queue.
  struct Place {
    let entry: MemoryEntry
    let slot: S3FIFOQueue.Slot
  }

  private struct State {
    var places: [CacheKey: Place] = [:]
    var hits = 0
    var misses = 0
  }

  private let state = Lock(State())

  /// Returns the fresh variant of `key` and counts a hit or a miss. A stale entry counts as a miss
  /// but is marked as used, because a stale hit may serve it.
  func variant(for key: CacheKey, freshAt now: UnixTime) -> Variant? {
    state.withLock { state in
      let entry = state.places[key]?.entry
      entry?.touch()
      guard let variant = entry?.variant, variant.info.freshness.isFresh(at: now) else {
        state.misses += 1
        return nil
      }
      state.hits += 1
      return variant
    }
  }

  /// Returns the entry of `key` without counting.
  func peek(_ key: CacheKey) -> MemoryEntry? {
    state.withLock { $0.places[key]?.entry }
  }

  /// All current entries.
  var entries: [MemoryEntry] {
    state.withLock { state in state.places.values.map(\.entry) }
  }

  /// Adds an entry. The shard must not hold its key.
  func put(_ place: Place) {
    state.withLock { $0.places[place.entry.variant.key] = place }
  }

  /// Removes and returns the entry of `key`.
  func take(_ key: CacheKey) -> Place? {
    state.withLock { $0.places.removeValue(forKey: key) }
  }

  /// The number of hits and misses so far.
  var lookups: (hits: Int, misses: Int) {
    state.withLock { ($0.hits, $0.misses) }
  }
}
