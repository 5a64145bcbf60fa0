// MemoryShard: one of the memory tier's tables, with a lock of its own.

import Model
import Platform

/// A part of the memory tier: entries by key, each with its place in the order of eviction. Changed by whoever has the
/// lock on that order; read by all, who wait for a single change or look-up, or for `entries`.
final class MemoryShard: Sendable {
  /// An entry and its place.
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

  /// What is kept under `key` and is fresh; counted. What is stale is used, too: it may be served by another look-up.
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

  /// What is kept under `key`; not counted.
  func peek(_ key: CacheKey) -> MemoryEntry? {
    state.withLock { $0.places[key]?.entry }
  }

  /// Everything that is kept now.
  var entries: [MemoryEntry] {
    state.withLock { state in state.places.values.map(\.entry) }
  }

  /// Keeps an entry under its key, under which nothing is kept.
  func put(_ place: Place) {
    state.withLock { $0.places[place.entry.variant.key] = place }
  }

  /// Takes out what is kept under `key`.
  func take(_ key: CacheKey) -> Place? {
    state.withLock { $0.places.removeValue(forKey: key) }
  }

  /// Look-ups so far.
  var lookups: (hits: Int, misses: Int) {
    state.withLock { ($0.hits, $0.misses) }
  }
}
