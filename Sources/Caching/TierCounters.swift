// TierCounters: the counters that both tiers have.

import Core

/// Counters of a tier. Only the disk tier's entries expire, are damaged or cannot be
/// stored.
final class TierCounters: Sendable {
  let hits = Counter()
  let misses = Counter()
  let stores = Counter("stores", "pictor_cache_stores_total", "Entries stored.")
  /// Entries evicted for room or because of memory pressure.
  let evictions = Counter(
    "evictions", "pictor_cache_evictions_total", "Entries evicted for room.")
  let expirations = Counter(
    "expirations", "pictor_cache_expirations_total", "Entries removed by age.")
  let damaged = Counter(
    "damaged", "pictor_cache_damaged_entries_total", "Damaged entries removed.")
  /// Counted when found.
  let purged = Counter(
    "purged", "pictor_cache_purged_entries_total", "Entries removed by purges.")
  /// Reads, writes, removals, scans and the purge journal that failed or were refused.
  let failures = Counter(
    "failures", "pictor_cache_failures_total", "Operations that a tier could not do.")
  /// Variants not stored at their first request; on disk only.
  let deferred = Counter()
  /// Variants removed because their source has too many; on disk only.
  let displaced = Counter()
  /// Time of look-ups that found an entry; on disk only.
  let latency = LatencyHistogram()

  /// Returns the figures of the tier `name`, with what it holds now.
  ///
  /// - Parameter lookups: hits and misses that the tier counts itself.
  func figures(
    of name: String, lookups: (hits: Int, misses: Int)? = nil, entries: Int, bytes: Int,
    limit: Int, purgesPending: Int
  ) -> Figures {
    var figures = Figures(of: self)
    let (hits, misses) = lookups ?? (self.hits.value, self.misses.value)
    let help = "Look-ups in a cache tier, by result."
    figures.add("hits", hits, "pictor_cache_lookups_total", help, ["result": "hit"])
    figures.add("misses", misses, "pictor_cache_lookups_total", help, ["result": "miss"])
    figures.add("hit_ratio", hits + misses == 0 ? 0 : Double(hits) / Double(hits + misses))
    figures.add("entries", entries, "pictor_cache_entries", "Entries of a cache tier.")
    figures.add(
      "bytes", bytes, "pictor_cache_size_bytes", "Bytes in a cache tier, with overhead.")
    figures.add(
      "limit", limit, "pictor_cache_limit_bytes", "The configured limit of a cache tier.")
    figures.add(
      "purges_pending", purgesPending, "pictor_cache_purges_pending",
      "Purges in effect with entries left to remove.")
    figures.label("tier", name)
    return figures
  }
}
