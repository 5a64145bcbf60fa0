// MemoryShard: a shard of the memory tier, with its own lock.

import Model
import Platform

/// A shard of the memory tier: entries by key. Only the holder of the queue's lock changes a shard.
/// Readers wait for one change or look-up at most, or for a copy of all `entries`.
///
/// The table is by the hash of the key, and each look-up compares the key with the entry's. So a
/// place takes 16 bytes and not 48, and of two keys with one hash the shard holds one. The hash has
/// 64 bits and a seed of the process, so that is rare and no client can cause it.
final class MemoryShard: Sendable {
  private struct State {
    var entries: [Int: MemoryEntry] = [:]
    var hits = 0
    var misses = 0

    func entry(of key: CacheKey) -> MemoryEntry? {
      guard let entry = entries[key.storedHash], entry.variant.key == key else { return nil }
      return entry
    }
  }

  private let state = Lock(State())

  /// Returns the fresh variant of `key` and counts a hit or a miss. A stale entry counts as a miss
  /// but is marked as used, because a stale hit may serve it.
  func variant(for key: CacheKey, freshAt now: UnixTime) -> Variant? {
    state.withLock { state in
      let entry = state.entry(of: key)
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
    state.withLock { $0.entry(of: key) }
  }

  /// All current entries.
  var entries: [MemoryEntry] {
    state.withLock { Array($0.entries.values) }
  }

  /// Adds an entry. Returns the one that it replaced: of the same key, or the same hash.
  func put(_ entry: MemoryEntry) -> MemoryEntry? {
    state.withLock { $0.entries.updateValue(entry, forKey: entry.variant.key.storedHash) }
  }

  /// Removes and returns the entry of `key`.
  func take(_ key: CacheKey) -> MemoryEntry? {
    state.withLock { state in
      guard let entry = state.entry(of: key) else { return nil }
      state.entries[key.storedHash] = nil
      return entry
    }
  }

  /// The number of hits and misses so far.
  var lookups: (hits: Int, misses: Int) {
    state.withLock { ($0.hits, $0.misses) }
  }
}
