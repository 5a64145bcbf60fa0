// MemoryTier: variants in memory, below a size limit.

import Core

/// The settings of the memory tier.
public struct MemoryTierConfiguration: PartConfiguration {
  /// The keys `memory.…`.
  public var settings: MemorySettings
  /// Maximum size in bytes, at least 0. 0 disables the tier.
  public var limit: Int
  /// Maximum number of variants. `nil` means no limit.
  public var countLimit: Int?
  /// Maximum bytes of variants in memory that the tier does not have, at least 0.
  public var responseLimit: Int

  /// Creates the configuration of a tier; the plan decides what `settings` leave open.
  public init(
    _ settings: MemorySettings = MemorySettings(), plan: MemoryPlan = .unlimited()
  ) {
    self.settings = settings
    limit = settings.limit ?? plan.memoryTier
    responseLimit = plan.responses
    countLimit = settings.countLimit == 0 ? nil : settings.countLimit
  }

  /// Maximum size of a variant that the tier keeps, in bytes.
  public var largestVariant: Int { limit / MemoryTier.largestShare }
}

/// A cache of variants in memory, by key. A hit costs one lock, one look-up and at most one written
/// byte, so event loops serve it inline.
///
/// - The tables are sharded by key, so that concurrent hits rarely contend.
/// - There is one eviction queue for all shards, so that a variant can use the whole limit. Hits do
///   not touch the queue.
/// - Eviction makes room before a variant is added, so the limit is never exceeded.
/// - Removed entries are released outside the locks.
public final class MemoryTier: MemoryCache {
  /// The estimated size of an entry in bytes without its body, key and strings. It covers the
  /// objects `Variant` and `ImageBytes`, the places in table and queue, the remembered hash after
  /// eviction, and the response that `Serving` prepares.
  ///
  /// The value covers serving by one thread. The response prepared by each further event loop is
  /// not counted. Measured as resident memory of a server with 100,000 variants, 1,536 bytes each;
  /// entries have become smaller since.
  public static let entryOverhead = 1_248

  private static let shardCount = 16
  /// A variant larger than this fraction of the limit, one sixteenth, is not stored. A few such
  /// variants would evict all others.
  static let largestShare = 16
  /// Maximum number of entries evicted while the queue is locked.
  private static let evictedAtOnce = 64

  private struct State {
    var queue = S3FIFOQueue()
    /// The current limit: the configured one, or less under memory pressure.
    var limit: Int
  }

  private let configuredLimit: Int
  private let countLimit: Int
  private let shards: [MemoryShard]
  /// If both locks are needed, this one is taken before a shard's lock.
  private let state: Lock<State>
  private let counters = TierCounters()

  /// Creates an empty tier.
  public init(_ configuration: MemoryTierConfiguration = MemoryTierConfiguration()) {
    configuredLimit = max(configuration.limit, 0)
    countLimit = max(configuration.countLimit ?? .max, 0)
    shards = (0..<Self.shardCount).map { _ in MemoryShard() }
    state = Lock(State(limit: configuredLimit))
  }

  /// See `MemoryCache`.
  public func variant(for key: CacheKey, freshAt now: UnixTime) -> Variant? {
    shard(of: key).variant(for: key, freshAt: now)
  }

  /// See `MemoryCache`.
  public func peek(_ key: CacheKey) -> Variant? { shard(of: key).peek(key)?.variant }

  /// See `MemoryCache`. A variant is not stored if it is larger than a sixteenth of the limit or if
  /// its body is in a file. The variant it would replace is removed in either case.
  public func store(_ variant: Variant, releasing gone: inout [Variant]) -> Bool {
    put(variant, insteadOf: nil, releasing: &gone)
  }

  /// See `MemoryCache`.
  public func exchange(
    _ old: Variant, for variant: Variant, releasing gone: inout [Variant]
  ) -> Bool {
    put(variant, insteadOf: old, releasing: &gone)
  }

  /// Stores a variant.
  ///
  /// - Parameter old: the only variant that it may replace; `nil`: any or none.
  private func put(
    _ variant: Variant, insteadOf old: Variant?, releasing gone: inout [Variant]
  ) -> Bool {
    // A tier without room never had an entry to replace.
    guard configuredLimit > 0 else { return false }
    let entry = MemoryEntry(variant, cost: Self.cost(of: variant))
    let isInMemory = if case .memory = variant.body { true } else { false }
    let isKept = state.withLock { state in
      if let old, shard(of: old.key).peek(old.key)?.variant !== old { return false }
      // The tier is above its limit only just after `setLimit`, whose thread is evicting. Do not
      // evict here: this may be an event loop.
      let fits =
        isInMemory && countLimit > 0 && entry.cost <= configuredLimit / Self.largestShare
        && entry.cost <= state.limit && state.queue.cost <= state.limit
      // The old variant is as good.
      if old != nil, !fits { return false }
      let replaced = takeOut(variant.key, from: &state)
      if let replaced {
        gone.append(replaced.entry.variant)
        entry.uses = replaced.entry.uses
      }
      guard fits else { return false }
      while state.queue.cost > state.limit - entry.cost || state.queue.count >= countLimit {
        guard let victim = evict(from: &state) else { return false }
        gone.append(victim.variant)
      }
      entry.slot = state.queue.insert(entry, isProven: replaced?.wasMain ?? false)
      // An entry whose key has the same hash gives way.
      if let other = shard(of: variant.key).put(entry) {
        _ = state.queue.remove(other.slot)
        counters.evictions.add()
        gone.append(other.variant)
      }
      return true
    }
    if isKept { counters.stores.add() }
    return isKept
  }

  /// See `MemoryCache`.
  public func remove(_ key: CacheKey) {
    _ = state.withLock { takeOut(key, from: &$0) }
  }

  /// See `MemoryCache`.
  public func removeVariants(of source: CacheKey) {
    _ = takeOut { $0.key.isVariant(of: source) }
  }

  /// See `MemoryCache`. Counts the removed variants as purged.
  public func removeAll(where isSelected: (Variant) -> Bool) -> Int {
    let count = takeOut(where: isSelected)
    counters.purged.add(count)
    return count
  }

  /// See `MemoryCache`.
  public var count: Int { state.withLock { $0.queue.count } }

  /// Removes the matching variants, one shard at a time, and returns their number.
  /// `isSelected` is called without a lock.
  private func takeOut(where isSelected: (Variant) -> Bool) -> Int {
    var count = 0
    for shard in shards {
      for entry in shard.entries where isSelected(entry.variant) {
        let key = entry.variant.key
        let taken = state.withLock { state in
          // The key may have another entry by now.
          shard.peek(key) === entry ? takeOut(key, from: &state) : nil
        }
        if taken != nil { count += 1 }
      }
    }
    return count
  }

  /// Changes the limit in bytes and evicts the excess on the calling thread. Evicts in batches, so
  /// that other threads wait only briefly.
  ///
  /// - Returns: the number of evicted entries.
  func setLimit(_ bytes: Int) -> Int {
    var count = 0
    while true {
      let gone = state.withLock { state in
        state.limit = max(bytes, 0)
        var gone: [MemoryEntry] = []
        while state.queue.cost > state.limit, gone.count < Self.evictedAtOnce,
          let victim = evict(from: &state)
        {
          gone.append(victim)
        }
        return gone
      }
      if gone.isEmpty { return count }
      count += gone.count
    }
  }

  /// The tier's figures, as `/stats` shows them.
  public var figures: Figures {
    let lookups = shards.map(\.lookups).reduce((hits: 0, misses: 0)) {
      ($0.hits + $1.hits, $0.misses + $1.misses)
    }
    let (entries, bytes) = state.withLock { ($0.queue.count, $0.queue.cost) }
    var figures = counters.figures(
      of: "memory", lookups: lookups, entries: entries, bytes: bytes, limit: configuredLimit,
      purgesPending: 0)
    for key in ["deferred", "displaced", "open_files"] { figures.add(key, 0) }
    return figures
  }

  /// Returns the size that a variant counts for, in bytes.
  static func cost(of variant: Variant) -> Int {
    held(by: variant.body) + variant.key.text.utf8.count + variant.info.etag.heldBytes
      + entryOverhead
  }

  private static func held(by body: Variant.Body) -> Int {
    switch body {
    case .memory(let bytes): bytes.heldBytes
    case .file(let region): region.count
    }
  }

  /// The shard's dictionary mixes all bits of the hash again, so the lowest bits can select the
  /// shard.
  private func shard(of key: CacheKey) -> MemoryShard {
    shards[key.storedHash & (Self.shardCount - 1)]
  }

  private func takeOut(
    _ key: CacheKey, from state: inout State
  ) -> (entry: MemoryEntry, wasMain: Bool)? {
    shard(of: key).take(key).flatMap { state.queue.remove($0.slot) }
  }

  private func evict(from state: inout State) -> MemoryEntry? {
    guard let victim = state.queue.evict() else { return nil }
    _ = shard(of: victim.variant.key).take(victim.variant.key)
    counters.evictions.add()
    return victim
  }
}

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

extension CacheKey {
  /// Returns whether this key names a variant of `source`: its text, a space, and more. Allocates
  /// nothing, unlike `CacheKey.source`, because it is called for each variant in memory.
  func isVariant(of source: CacheKey) -> Bool {
    let text = text.utf8
    let prefix = source.text.utf8
    // The fast path: most keys have no space where the source's key would end.
    guard source.isSource, text.count > prefix.count,
      text[text.index(text.startIndex, offsetBy: prefix.count)] == UInt8(ascii: " ")
    else { return false }
    return text.starts(with: prefix)
  }
}
