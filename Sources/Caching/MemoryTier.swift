// MemoryTier: finished pictures in memory, below a limit in bytes.

import Model
import Synchronization
import Telemetry

/// What the memory tier can be told.
public struct MemoryTierConfiguration: Sendable {
  /// Most bytes kept, at least 0; 0 turns the tier off.
  public var limit = 256 << 20
  /// Most variants kept; `nil`: as many as fit.
  public var countLimit: Int?

  /// The defaults.
  public init() {}
}

/// Variants whose bodies are in memory, by key. A hit costs one lock and one look-up: it is answered on the server's
/// own threads.
///
/// The tables are sharded by key, so that two threads seldom meet; bytes are counted over all of them, so a limit of
/// any size holds any variant that fits it. Room is made before a variant goes in: the limit is never exceeded.
public final class MemoryTier: MemoryCache {
  /// What an entry costs besides its body, key and strings, in bytes: the objects `Variant` and `ImageBytes`, its
  /// places in the table and the queue, and what `Serving` prepares for it (a response with a dozen headers).
  public static let entryOverhead = 1_024

  private static let shardCount = 16

  private let limit: Int
  private let countLimit: Int
  private let shards: [MemoryShard]
  private let bytes = Atomic<Int>(0)
  private let entries = Atomic<Int>(0)
  /// The shard that gives up an entry next.
  private let turn = Atomic<Int>(0)
  private let stores = Counter()
  private let evictions = Counter()

  /// An empty tier.
  public init(_ configuration: MemoryTierConfiguration = MemoryTierConfiguration()) {
    limit = max(configuration.limit, 0)
    countLimit = max(configuration.countLimit ?? .max, 0)
    shards = (0..<Self.shardCount).map { _ in MemoryShard() }
  }

  /// See `MemoryCache`.
  public func variant(for key: CacheKey) -> Variant? { shard(of: key).variant(for: key) }

  /// See `MemoryCache`.
  public func peek(_ key: CacheKey) -> Variant? { shard(of: key).peek(key) }

  /// See `MemoryCache`. A variant that is larger than the limit, or whose body is in a file, is not kept, and neither is
  /// what it would have replaced.
  @discardableResult public func store(_ variant: Variant) -> Bool {
    let cost = Self.cost(of: variant)
    guard case .memory = variant.body, cost <= limit, countLimit > 0, makeRoom(for: cost) else {
      remove(variant.key)
      return false
    }
    stores.add()
    let replaced = shard(of: variant.key).insert(MemoryShard.Entry(variant: variant, cost: cost))
    if let replaced { release(replaced) }
    return true
  }

  /// See `MemoryCache`.
  public func remove(_ key: CacheKey) {
    if let entry = shard(of: key).remove(key) { release(entry) }
  }

  /// See `MemoryCache`.
  public func removeVariants(of source: CacheKey) {
    _ = removeAll { $0.isVariant(of: source) }
  }

  /// See `MemoryCache`. One part of the table after another, each under its own lock: hits elsewhere do not wait.
  public func removeAll(where isMeant: (CacheKey) -> Bool) -> Int {
    shards.reduce(0) { count, shard in
      let entries = shard.removeAll(where: isMeant)
      for entry in entries { release(entry) }
      return count + entries.count
    }
  }

  /// The state now, as `/stats` shows it.
  public var figures: TierFigures {
    var figures = TierFigures()
    for shard in shards {
      let lookups = shard.lookups
      figures.hits += lookups.hits
      figures.misses += lookups.misses
    }
    let all = figures.hits + figures.misses
    figures.hitRatio = all == 0 ? 0 : Double(figures.hits) / Double(all)
    figures.entries = entries.load(ordering: .relaxed)
    figures.bytes = bytes.load(ordering: .relaxed)
    figures.limit = limit
    figures.stores = stores.value
    figures.evictions = evictions.value
    return figures
  }

  /// The bytes a variant counts for.
  static func cost(of variant: Variant) -> Int {
    variant.body.count + variant.key.text.utf8.count + variant.info.etag.utf8.count
      + (variant.info.lastModified?.utf8.count ?? 0) + entryOverhead
  }

  /// The dictionary in a shard mixes all bits of the hash again, so taking the lowest here takes nothing from it.
  private func shard(of key: CacheKey) -> MemoryShard {
    shards[key.storedHash & (Self.shardCount - 1)]
  }

  /// Counts an entry in advance, evicting others until it fits.
  ///
  /// Each shard gives up one in turn. One whose entries were all hit gives up none the first time, so a shard with a
  /// single popular entry does not lose it while others have worse. The number of turns is bounded for the case that
  /// clients hit everything faster than the hands can pass; the variant is then not kept.
  private func makeRoom(for cost: Int) -> Bool {
    var failures = 0
    while !reserve(cost) {
      let index = turn.wrappingAdd(1, ordering: .relaxed).newValue & (Self.shardCount - 1)
      if let victim = shards[index].evict() {
        evictions.add()
        release(victim)
        failures = 0
      } else {
        failures += 1
        if failures > 4_096 * Self.shardCount { return false }
      }
    }
    return true
  }

  private func reserve(_ cost: Int) -> Bool {
    guard bytes.add(cost, upTo: limit) else { return false }
    guard entries.add(1, upTo: countLimit) else {
      bytes.wrappingSubtract(cost, ordering: .relaxed)
      return false
    }
    return true
  }

  private func release(_ entry: MemoryShard.Entry) {
    bytes.wrappingSubtract(entry.cost, ordering: .relaxed)
    entries.wrappingSubtract(1, ordering: .relaxed)
  }
}
