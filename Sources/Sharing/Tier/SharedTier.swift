// SharedTier: variants in Redis, written behind and checked like network input.

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
  private let state = Lock(State())

  /// - Parameters:
  ///   - limit: the largest body in bytes; 0 turns the tier off.
  ///   - leases: the leases that end with a write; `nil` without leases.
  init(
    client: RedisClient, stream: PurgeStream, coding: any VariantCoding, filter: CacheKeyFilter,
    prefix: String, limit: Int, leases: FleetLeases? = nil
  ) {
    self.client = client
    self.stream = stream
    self.coding = coding
    self.filter = filter
    self.prefix = prefix
    self.limit = limit
    self.leases = leases
    leases?.finish.withLock { finish in
      finish = { [weak self] lease in
        self?.append { state in
          // Bounded by the leases of this machine.
          state.queue.append(.end(lease))
          return true
        }
      }
    }
  }

  /// Variants that wait to be written.
  var waiting: Int { state.withLock { $0.queue.count } }

  // MARK: Reading

  /// Returns a variant that no purge covers.
  func variant(for key: CacheKey, generation: Int) async -> Variant? {
    guard limit > 0, stream.isSynchronised,
      let reply = try? await client.send([RedisCommand("GET", name(of: key))]).first
    else { return nil }
    guard case .bytes(let bytes) = reply else {
      counters.misses.add()
      return nil
    }
    // Decoded first, checked last: a purge that arrives meanwhile counts.
    guard let (mark, variant) = read(bytes, as: key, generation: generation),
      stream.allows(key, mark: mark, filter: filter)
    else {
      counters.refused.add()
      return nil
    }
    counters.hits.add()
    return variant
  }

  private func read(
    _ bytes: [UInt8], as key: CacheKey, generation: Int
  ) -> (SharedMark, Variant)? {
    guard let (mark, content) = SharedEntry.read(bytes), content.count <= limit + (64 << 10) else {
      return nil
    }
    return content.withUnsafeBytes { coding.decode($0, as: key, generation: generation) }
      .map { (mark, $0) }
  }

  // MARK: Leases

  /// Takes the lease of a variant, or waits for the machine that has it.
  func lease(_ request: LeaseRequest) async -> LeaseOutcome<Variant> {
    guard let leases, limit > 0, stream.isSynchronised else { return .none }
    let name = LeaseName(.variant, of: request.key)
    return await leases.lease(
      of: name, waits: request.waits, look: RedisCommand("GET", prefix + name.entry),
      generation: request.generation
    ) { reply, generation in
      guard case .bytes(let bytes) = reply,
        let (mark, variant) = read(bytes, as: request.key, generation: generation),
        stream.allows(request.key, mark: mark, filter: filter), await request.accepts(variant)
      else { return nil }
      return variant
    }
  }

  // MARK: Writing

  /// Queues a variant, or drops it.
  func store(_ variant: Variant, since mark: SharedMark) {
    guard case .memory = variant.body, variant.body.count <= limit else { return }
    guard client.isReady() else { return counters.dropped.add() }
    let isQueued = append { state in
      guard state.queue.count < Self.queueLimit,
        state.bytes + variant.body.count <= Self.queueBytes
      else { return false }
      state.queue.append(.write(variant, mark, leases?.claim(LeaseName(.variant, of: variant.key))))
      state.bytes += variant.body.count
      return true
    }
    if !isQueued { counters.dropped.add() }
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
    let bytes = SharedEntry.bytes(mark, content)
    let life = Self.lifetime(of: variant.info.freshness, at: .now) * 1_000
    let isWritten: Bool
    if let leases, let lease {
      let reply = try? await client.send([leases.write(bytes, life: life, ending: lease)]).first
      isWritten = leases.hasWritten(lease, reply)
    } else {
      let command = RedisCommand([
        Array("SET".utf8), Array(name(of: variant.key).utf8), bytes, Array("PX".utf8),
        Array("\(life)".utf8),
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

  private func name(of key: CacheKey) -> String { prefix + LeaseName(.variant, of: key).entry }
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
