// VariantWriter: writes variants to Redis and to a bucket behind the answers.

import Model
import Platform
import Telemetry

/// Writes the variants that machines share, in the order of their arrival.
final class VariantWriter: Sendable {
  private struct State {
    var queue = Deque<(variant: Variant, mark: SharedMark)>()
    var bytes = 0
    var isDraining = false
  }

  /// The most variants, and their bytes, that wait to be written. They are those of the memory tier's budget.
  private static let queueLimit = 1_024
  private static let queueBytes = 16 << 20

  private let client: RedisClient
  private let coding: any VariantCoding
  private let prefix: String
  private let limit: Int
  private let objects: BucketVariants?
  private let counters: SharedCounters
  private let state = Lock(State())

  /// - Parameters:
  ///   - limit: the largest body in Redis, in bytes; 0: none.
  ///   - objects: the variants in a bucket; `nil` without one.
  init(
    client: RedisClient, coding: any VariantCoding, prefix: String, limit: Int,
    objects: BucketVariants?, counters: SharedCounters
  ) {
    self.client = client
    self.coding = coding
    self.prefix = prefix
    self.limit = limit
    self.objects = objects
    self.counters = counters
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
    if fitsRedis, !append(variant, mark) { counters.dropped.add() }
    guard fitsBucket else { return }
    let isBegun = objects?.write(variant, since: mark, name: SharedEntry.name(of: variant.key)) {
      [self] isWritten in
      guard !fitsRedis else { return }
      // Redis says that the bucket has it.
      if isWritten {
        await put(SharedEntry.bytes(mark, [], as: .inBucket), for: variant)
      } else {
        counters.dropped.add()
      }
    }
    if !fitsRedis, isBegun != true { counters.dropped.add() }
  }

  /// Queues a variant for Redis. Returns `false` if the queue is full.
  private func append(_ variant: Variant, _ mark: SharedMark) -> Bool {
    let (isQueued, mustStart) = state.withLock { state -> (Bool, Bool) in
      guard state.queue.count < Self.queueLimit,
        state.bytes + variant.body.count <= Self.queueBytes
      else { return (false, false) }
      state.queue.append((variant, mark))
      state.bytes += variant.body.count
      defer { state.isDraining = true }
      return (true, !state.isDraining)
    }
    // For all variants: it inherits neither priority nor client of the request that made this one.
    if mustStart { Task.detached { [self] in await drain() } }
    return isQueued
  }

  private func drain() async {
    while let next = next() {
      if let content = coding.encode(next.variant) {
        await put(SharedEntry.bytes(next.mark, content), for: next.variant)
      }
    }
  }

  /// Writes an entry to Redis.
  private func put(_ bytes: [UInt8], for variant: Variant) async {
    let command = RedisCommand(
      setting: prefix + SharedEntry.name(of: variant.key), to: bytes,
      milliseconds: VariantTier.lifetime(of: variant.info.freshness, at: .now) * 1_000)
    let isWritten = (try? await client.send([command]).first) == .status("OK")
    (isWritten ? counters.stores : counters.dropped).add()
  }

  private func next() -> (variant: Variant, mark: SharedMark)? {
    state.withLock { state in
      guard let next = state.queue.popFirst() else {
        state.isDraining = false
        return nil
      }
      state.bytes -= next.variant.body.count
      return next
    }
  }
}
