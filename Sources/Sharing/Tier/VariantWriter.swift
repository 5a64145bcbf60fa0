// VariantWriter: writes variants to Redis and to a bucket behind the answers, and ends their leases.

import Model
import Platform
import Telemetry

/// Writes the variants that machines share, in the order of their arrival.
final class VariantWriter: Sendable {
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

  private let client: RedisClient
  private let coding: any VariantCoding
  private let prefix: String
  private let limit: Int
  private let leases: FleetLeases?
  private let objects: BucketVariants?
  private let counters: SharedCounters
  private let state = Lock(State())

  /// - Parameters:
  ///   - limit: the largest body in Redis, in bytes; 0: none.
  ///   - leases: the leases that end with a write; `nil` without leases.
  ///   - objects: the variants in a bucket; `nil` without one.
  init(
    client: RedisClient, coding: any VariantCoding, prefix: String, limit: Int,
    leases: FleetLeases?, objects: BucketVariants?, counters: SharedCounters
  ) {
    self.client = client
    self.coding = coding
    self.prefix = prefix
    self.limit = limit
    self.leases = leases
    self.objects = objects
    self.counters = counters
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

  /// Variants that wait to be written to Redis.
  var waiting: Int { state.withLock { $0.queue.count } }

  /// Queues a variant, or drops it. Small ones go to Redis and to the bucket, large ones to the bucket.
  func store(_ variant: Variant, since mark: SharedMark) {
    // Machines take fresh variants only.
    guard case .memory = variant.body, variant.info.freshness.timeToLive(at: .now) > 0 else {
      return
    }
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
    if !waiting.isEmpty {
      Task.detached { [self] in for lease in waiting { await leases?.tell(lease) } }
    }
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
    // For all variants: it inherits neither priority nor client of the request that made this one.
    if mustStart { Task.detached { [self] in await drain() } }
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
    let life = VariantTier.lifetime(of: variant.info.freshness, at: .now) * 1_000
    let isWritten: Bool
    if let leases, let lease {
      let reply = try? await client.send([leases.write(bytes, life: life, ending: lease)]).first
      isWritten = leases.hasWritten(lease, reply)
    } else {
      let command = RedisCommand(
        setting: prefix + LeaseName(.variant, of: variant.key).entry, to: bytes, milliseconds: life)
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
}
