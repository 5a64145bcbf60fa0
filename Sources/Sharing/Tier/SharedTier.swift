// SharedTier: variants in Redis and in a bucket, written behind and checked like network input.

import Model
import Platform
import Telemetry

/// The variants that machines share.
final class SharedTier: Sendable {
  private enum Item {
    /// A variant, and the lease that ends once it is written.
    case write(Variant, SharedMark, HeldLease?)
    /// A lease that ends once all before it is written.
    case end(HeldLease)
  }

  private struct State {
    var queue = Deque<Item>()
    var bytes = 0
    var isDraining = false
    /// Variants that are written to the bucket before Redis says so: how many of each key, and the leases that end
    /// afterwards.
    var inBucket: [LeaseName: (count: Int, leases: [HeldLease])] = [:]
  }

  /// The most variants, and their bytes, that wait to be written. They are those of the memory tier's budget.
  private static let queueLimit = 1_024
  private static let queueBytes = 16 << 20

  let counters = SharedTierCounters()
  private let client: RedisClient
  private let stream: PurgeStream
  private let coding: any VariantCoding
  private let filter: CacheKeyFilter
  private let prefix: String
  private let limit: Int
  private let leases: FleetLeases?
  private let objects: SharedObjects?
  private let failures: SharedFailures?
  private let state = Lock(State())

  /// - Parameters:
  ///   - limit: the largest body in Redis, in bytes; 0: none.
  ///   - leases: the leases that end with a write; `nil` without leases.
  ///   - failures: the shared failures; `nil` if they are not shared.
  ///   - objects: the variants in a bucket; `nil` without one.
  init(
    client: RedisClient, stream: PurgeStream, coding: any VariantCoding, filter: CacheKeyFilter,
    prefix: String, limit: Int, leases: FleetLeases? = nil, failures: SharedFailures? = nil,
    objects: SharedObjects? = nil
  ) {
    self.client = client
    self.stream = stream
    self.coding = coding
    self.filter = filter
    self.prefix = prefix
    self.limit = limit
    self.leases = leases
    self.objects = objects
    self.failures = failures
    leases?.finish.withLock { finish in
      finish = { [weak self] lease in
        self?.append { state in
          // Bounded by the leases of this machine.
          if state.inBucket[lease.name]?.leases.append(lease) != nil { return false }
          state.queue.append(.end(lease))
          return true
        }
      }
    }
  }

  /// Whether there is a place for variants.
  private var isOn: Bool { limit > 0 || objects != nil }

  /// Variants that wait to be written.
  var waiting: Int { state.withLock { $0.queue.count } + (objects?.waiting ?? 0) }

  // MARK: Reading

  /// What a look-up found.
  private enum Look {
    case found(Variant)
    case refused
    case absent
  }

  /// Returns the variant and the failure of its source that no purge covers. Redis is asked once if there is no failure;
  /// the bucket, if Redis has neither.
  func look(for key: CacheKey, generation: Int, withFailure: Bool) async -> SharedLookup {
    let failures = withFailure ? failures : nil
    let name = LeaseName(.variant, of: key)
    var commands = isOn ? [RedisCommand("GET", prefix + name.entry)] : []
    if let failures { commands.append(failures.look(for: key.source)) }
    guard !commands.isEmpty, stream.isSynchronised, let replies = try? await client.send(commands),
      replies.count == commands.count
    else { return SharedLookup() }
    var found = SharedLookup()
    found.failure = await failures?.failure(of: key.source, in: replies[replies.count - 1])
    guard isOn else { return found }
    let look: Look
    if case .bytes(let bytes) = replies[0] {
      look = await read(bytes, as: key, name: name, generation: generation)
    } else if found.failure == nil {
      look = await inBucket(key, name: name, generation: generation)
    } else {
      look = .absent
    }
    switch look {
    case .found(let variant):
      counters.hits.add()
      found.variant = variant
    case .refused: counters.refused.add()
    case .absent: counters.misses.add()
    }
    return found
  }

  /// Reads an entry of Redis, or the one in the bucket that it stands for.
  private func read(
    _ bytes: [UInt8], as key: CacheKey, name: LeaseName, generation: Int
  ) async -> Look {
    let (mark, variant, isInBucket) = bytes.withUnsafeBytes {
      bytes -> (SharedMark?, Variant?, Bool) in
      guard let entry = SharedEntry.parse(bytes) else { return (nil, nil, false) }
      switch entry.kind {
      case .whole:
        guard entry.content.count <= limit + SharedObjects.frameLimit else {
          return (nil, nil, false)
        }
        return (entry.mark, coding.decode(entry.content, as: key, generation: generation), false)
      case .inBucket: return (entry.mark, nil, entry.content.isEmpty)
      case .dated: return (nil, nil, false)
      }
    }
    // Decoded first, checked last: a purge that arrives meanwhile counts.
    guard let mark, variant != nil || isInBucket, stream.allows(key, mark: mark, filter: filter)
    else { return .refused }
    if let variant { return .found(variant) }
    return await inBucket(key, name: name, generation: generation)
  }

  private func inBucket(_ key: CacheKey, name: LeaseName, generation: Int) async -> Look {
    guard let objects else { return .absent }
    switch await objects.variant(for: key, name: name.entry, generation: generation) {
    case .none: return .absent
    case .refused: return .refused
    case .found(let mark, let variant):
      guard stream.allows(key, mark: mark, filter: filter) else {
        objects.store.counters.refused.add()
        return .refused
      }
      return .found(variant)
    }
  }

  // MARK: Leases

  /// Takes the lease of a variant, or waits for the machine that has it.
  func lease(_ request: LeaseRequest) async -> LeaseOutcome<Variant> {
    guard let leases, isOn, stream.isSynchronised else { return .none }
    let name = LeaseName(.variant, of: request.key)
    let outcome: LeaseOutcome<Variant> = await leases.lease(
      of: name, waits: request.waits, look: RedisCommand("GET", prefix + name.entry),
      generation: request.generation
    ) { reply, generation in
      guard case .bytes(let bytes) = reply,
        case .found(let variant) = await read(
          bytes, as: request.key, name: name, generation: generation),
        await request.accepts(variant)
      else { return nil }
      return variant
    }
    // Another machine's work may have failed meanwhile.
    guard case .none = outcome, request.waits, !Task.isCancelled,
      let failure = await failures?.failure(of: request.key.source)
    else { return outcome }
    return .failed(failure)
  }

  // MARK: Writing

  /// Queues a variant, or drops it. Small ones go to Redis and to the bucket, large ones to the bucket.
  func store(_ variant: Variant, since mark: SharedMark) {
    guard case .memory = variant.body else { return }
    let fitsRedis = limit > 0 && variant.body.count <= limit
    let fitsBucket = objects?.takes(variant.body.count) == true
    guard fitsRedis || fitsBucket else { return }
    guard client.isReady() else { return counters.dropped.add() }
    let name = LeaseName(.variant, of: variant.key)
    if fitsRedis {
      let isQueued = append { state in
        guard state.queue.count < Self.queueLimit,
          state.bytes + variant.body.count <= Self.queueBytes
        else { return false }
        state.queue.append(.write(variant, mark, leases?.claim(name)))
        state.bytes += variant.body.count
        return true
      }
      if !isQueued { counters.dropped.add() }
    }
    guard fitsBucket else { return }
    if fitsRedis {
      _ = objects?.write(variant, since: mark, name: name.entry) { _ in }
    } else {
      storeLarge(variant, name, since: mark)
    }
  }

  /// Writes a variant to the bucket, and then to Redis that it is there, which ends its lease.
  private func storeLarge(_ variant: Variant, _ name: LeaseName, since mark: SharedMark) {
    let lease = leases?.claim(name)
    state.withLock { $0.inBucket[name, default: (0, [])].count += 1 }
    let isBegun = objects?.write(variant, since: mark, name: name.entry) {
      [self] isWritten in
      if isWritten {
        await put(SharedEntry.bytes(mark, [], as: .inBucket), for: variant, ending: lease)
      } else {
        counters.dropped.add()
        if let lease { leases?.end(lease, admitting: nil) }
      }
      for waiting in endLarge(name) { await leases?.tell(waiting) }
    }
    guard isBegun != true else { return }
    counters.dropped.add()
    if let lease { leases?.end(lease, admitting: nil) }
    let waiting = endLarge(name)
    if !waiting.isEmpty { Task { for lease in waiting { await leases?.tell(lease) } } }
  }

  /// Returns the leases that end now.
  private func endLarge(_ name: LeaseName) -> [HeldLease] {
    state.withLock { state in
      guard var entry = state.inBucket[name] else { return [] }
      entry.count -= 1
      state.inBucket[name] = entry.count > 0 ? entry : nil
      return entry.count > 0 ? [] : entry.leases
    }
  }

  /// Changes the queue, which is drained if `change` returns `true`. Returns that.
  @discardableResult private func append(_ change: (inout State) -> Bool) -> Bool {
    let (isQueued, mustStart) = state.withLock { state -> (Bool, Bool) in
      guard change(&state) else { return (false, false) }
      defer { state.isDraining = true }
      return (true, !state.isDraining)
    }
    if mustStart { Task { await drain() } }
    return isQueued
  }

  private func drain() async {
    while let item = next() {
      switch item {
      case .write(let variant, let mark, let lease): await write(variant, mark, ending: lease)
      case .end(let lease): await leases?.tell(lease)
      }
    }
  }

  private func write(_ variant: Variant, _ mark: SharedMark, ending lease: HeldLease?) async {
    guard let content = coding.encode(variant) else {
      if let lease { leases?.end(lease, admitting: nil) }
      return
    }
    await put(SharedEntry.bytes(mark, content), for: variant, ending: lease)
  }

  /// Writes an entry to Redis, and ends the lease in the same step.
  private func put(_ bytes: [UInt8], for variant: Variant, ending lease: HeldLease?) async {
    let life = Self.lifetime(of: variant.info.freshness, at: .now) * 1_000
    let isWritten: Bool
    if let leases, let lease {
      let reply = try? await client.send([leases.write(bytes, life: life, ending: lease)]).first
      isWritten = leases.hasWritten(lease, reply)
    } else {
      let command = RedisCommand([
        Array("SET".utf8), Array((prefix + LeaseName(.variant, of: variant.key).entry).utf8), bytes,
        Array("PX".utf8), Array("\(life)".utf8),
      ])
      isWritten = (try? await client.send([command]).first) == .status("OK")
    }
    (isWritten ? counters.stores : counters.dropped).add()
  }

  private func next() -> Item? {
    state.withLock { state in
      guard let next = state.queue.popFirst() else {
        state.isDraining = false
        return nil
      }
      if case .write(let variant, _, _) = next { state.bytes -= variant.body.count }
      return next
    }
  }

  /// Seconds until a variant is useless: its lifetime and the longer stale window, at least a minute.
  static func lifetime(of freshness: Freshness, at now: UnixTime) -> Int {
    let window = max(freshness.staleWhileRevalidate, freshness.staleIfError)
    return max(freshness.timeToLive(at: now) + (freshness.mayBeStale ? window : 0), 60)
  }
}

/// Counts since the start.
final class SharedTierCounters: Sendable {
  /// Variants found.
  let hits = Counter()
  /// Variants that Redis does not have.
  let misses = Counter()
  /// Entries that are purged, damaged or of another version.
  let refused = Counter()
  /// Variants written.
  let stores = Counter()
  /// Variants that were not written: the queue was full, or Redis was away or full.
  let dropped = Counter()
}
