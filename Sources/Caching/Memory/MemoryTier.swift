// MemoryTier: finished images in memory, below a limit in bytes.

import Model
import Platform
import Telemetry

/// What the memory tier can be told.
public struct MemoryTierConfiguration: Sendable {
  /// Most bytes kept, at least 0; 0 turns the tier off.
  public var limit = 256 << 20
  /// Most variants kept; `nil`: as many as fit.
  public var countLimit: Int?
  /// Share of the memory that the system allows this process, in use by it and all it shares that with, from which on
  /// fewer are kept; up to 1; 0: never.
  public var pressure = 0.9

  /// The defaults.
  public init() {}
}

/// Variants whose bodies are in memory, by key. A hit costs one lock, one look-up and at most one byte written: it is
/// answered on the server's own threads.
///
/// The tables are sharded by key, so that two hits seldom meet; the order of eviction, which hits do not touch, is one
/// for all, so that a limit of any size holds any variant that fits it. Room is made before a variant goes in: the limit
/// is never exceeded. What is taken out is released when no lock is held.
public final class MemoryTier: MemoryCache {
  /// What an entry costs besides its body, key and strings, in bytes: the objects `Variant` and `ImageBytes`, its
  /// places in the table and the queue, the name that is remembered when it goes, and what `Serving` prepares for it (a
  /// response with a dozen headers).
  ///
  /// Measured as resident memory of a server with 100,000 variants of 200 bytes: 630 before they were served from
  /// memory, 1,490 when all had been, by one thread. Each further thread that serves one makes it another 800, which is
  /// not counted: what few threads serve is most of it.
  public static let entryOverhead = 1_536

  private static let shardCount = 16
  /// A variant that takes more than this part of the limit is not kept: a few of them would push out all others.
  static let largestShare = 16
  /// Entries that go while the order of eviction is locked, where many have to.
  private static let evictedAtOnce = 64

  private struct State {
    var queue = S3FIFOQueue()
    /// The configured one, or less while memory is short.
    var limit: Int
  }

  private let configuredLimit: Int
  private let countLimit: Int
  private let shards: [MemoryShard]
  /// Taken before a shard's lock where both are.
  private let state: Lock<State>
  private let stores = Counter()
  private let evictions = Counter()
  private let purged = Counter()

  /// An empty tier.
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

  /// See `MemoryCache`. A variant that is larger than a sixteenth of the limit, or whose body is in a file, is not kept,
  /// and neither is what it would have replaced.
  @discardableResult public func store(_ variant: Variant) -> Bool {
    let entry = MemoryEntry(variant, cost: Self.cost(of: variant))
    let isInMemory = if case .memory = variant.body { true } else { false }
    // Released after the lock, with all it holds.
    var gone: [MemoryEntry] = []
    let isKept = state.withLock { state in
      let replaced = takeOut(variant.key, from: &state)
      if let replaced {
        gone.append(replaced.entry)
        entry.uses = replaced.entry.uses
      }
      // Above the limit the tier is only just after that was lowered: whoever did that is making room, and this may be a
      // thread that others wait for.
      guard isInMemory, countLimit > 0, entry.cost <= configuredLimit / Self.largestShare,
        entry.cost <= state.limit, state.queue.cost <= state.limit
      else { return false }
      while state.queue.cost > state.limit - entry.cost || state.queue.count >= countLimit {
        guard let victim = evict(from: &state) else { return false }
        gone.append(victim)
      }
      let slot = state.queue.insert(entry, isProven: replaced?.wasMain ?? false)
      shard(of: variant.key).put(MemoryShard.Place(entry: entry, slot: slot))
      return true
    }
    if isKept { stores.add() }
    return isKept
  }

  /// See `MemoryCache`.
  public func remove(_ key: CacheKey) {
    _ = state.withLock { takeOut(key, from: &$0) }
  }

  /// See `MemoryCache`.
  public func removeVariants(of source: CacheKey) {
    _ = takeOut { $0.isVariant(of: source) }
  }

  /// See `MemoryCache`. Counted as purged.
  public func removeAll(where isMeant: (CacheKey) -> Bool) -> Int {
    let count = takeOut(where: isMeant)
    purged.add(count)
    return count
  }

  /// Tells how many there were. Keys are judged without a lock, one part of the table after another.
  private func takeOut(where isMeant: (CacheKey) -> Bool) -> Int {
    var count = 0
    for shard in shards {
      for entry in shard.entries where isMeant(entry.variant.key) {
        let key = entry.variant.key
        let taken = state.withLock { state in
          // Something else may be kept under the key by now.
          shard.peek(key) === entry ? takeOut(key, from: &state) : nil
        }
        if taken != nil { count += 1 }
      }
    }
    return count
  }

  /// Changes the limit in bytes, and evicts on this thread what is above it: few entries at a time, so that nobody waits
  /// for all of them.
  ///
  /// - Returns: how many entries went.
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
    (figures.entries, figures.bytes) = state.withLock { ($0.queue.count, $0.queue.cost) }
    figures.limit = configuredLimit
    figures.stores = stores.value
    figures.evictions = evictions.value
    figures.purged = purged.value
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

  private func takeOut(
    _ key: CacheKey, from state: inout State
  ) -> (entry: MemoryEntry, wasMain: Bool)? {
    shard(of: key).take(key).flatMap { state.queue.remove($0.slot) }
  }

  private func evict(from state: inout State) -> MemoryEntry? {
    guard let victim = state.queue.evict() else { return nil }
    _ = shard(of: victim.variant.key).take(victim.variant.key)
    evictions.add()
    return victim
  }
}
