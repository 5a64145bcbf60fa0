// VariantWriter: writes variants to Redis and to a bucket behind the answers.

import Model
import Platform
import Telemetry

/// Writes the variants that machines share: to Redis in the order of their arrival, to the bucket at the same time.
final class VariantWriter: Sendable {
  /// The variants that wait for one store.
  private struct Waiting {
    let countLimit: Int
    var count = 0
    var bytes = 0

    /// Takes room for a variant, or returns `false`. One variant always fits.
    mutating func admit(_ length: Int) -> Bool {
      guard count < countLimit, bytes == 0 || length <= VariantWriter.byteLimit - bytes else {
        return false
      }
      count += 1
      bytes += length
      return true
    }

    mutating func end(_ length: Int) {
      count -= 1
      bytes -= length
    }
  }

  private struct State {
    var queue = Deque<(variant: Variant, mark: SharedMark)>()
    var isDraining = false
    var redis = Waiting(countLimit: 1_024)
    var bucket = Waiting(countLimit: 256)
  }

  /// The most bytes that wait for one store. They are those of the memory tier's budget.
  private static let byteLimit = 16 << 20

  private let client: RedisClient
  private let coding: any VariantCoding
  private let prefix: String
  private let limit: Int
  private let bucket: S3Bucket?
  private let counters: SharedCounters
  private let state = Lock(State())

  /// - Parameters:
  ///   - limit: the largest body in Redis, in bytes; 0: none.
  ///   - bucket: `nil` without one.
  init(
    client: RedisClient, coding: any VariantCoding, prefix: String, limit: Int,
    bucket: S3Bucket?, counters: SharedCounters
  ) {
    self.client = client
    self.coding = coding
    self.prefix = prefix
    self.limit = limit
    self.bucket = bucket
    self.counters = counters
  }

  /// Variants that wait to be written.
  var waiting: Int { state.withLock { $0.redis.count + $0.bucket.count } }

  /// Queues a variant, or drops it. Small ones go to Redis and to the bucket, large ones to the bucket.
  func store(_ variant: Variant, since mark: SharedMark) {
    // Machines take fresh variants only.
    guard case .memory = variant.body, variant.info.freshness.timeToLive(at: .now) > 0 else {
      return
    }
    let length = variant.body.count
    let fitsRedis = limit > 0 && length <= limit
    let fitsBucket = bucket.map { length <= $0.entryLimit - VariantTier.frameLimit } ?? false
    guard fitsRedis || fitsBucket else { return }
    guard client.isReady() else { return counters.dropped.add() }
    if fitsRedis, !queue(variant, mark) { counters.dropped.add() }
    guard fitsBucket, let bucket else { return }
    guard bucket.isReady, state.withLock({ $0.bucket.admit(length) }) else {
      bucket.counters.dropped.add()
      if !fitsRedis { counters.dropped.add() }
      return
    }
    // For all machines: it inherits neither priority nor client of the request that made the variant.
    Task.detached { [self] in
      let isWritten = await write(variant, mark, to: bucket)
      if !fitsRedis {
        // Redis says that the bucket has it.
        if isWritten {
          await put(SharedEntry.bytes(mark, [], as: .inBucket), for: variant)
        } else {
          counters.dropped.add()
        }
      }
      state.withLock { $0.bucket.end(length) }
    }
  }

  /// Writes an entry to the bucket. Returns whether the bucket has confirmed it.
  private func write(_ variant: Variant, _ mark: SharedMark, to bucket: S3Bucket) async -> Bool {
    guard let content = coding.encode(variant) else { return false }
    let life = VariantTier.lifetime(of: variant.info.freshness, at: .now)
    let expires = UnixTime(seconds: UnixTime.now.seconds + life)
    return await bucket.write(
      SharedEntry.name(of: variant.key), SharedEntry.bytes(mark, content, expires: expires),
      lifetime: life)
  }

  /// Queues a variant for Redis. Returns `false` if the queue is full.
  private func queue(_ variant: Variant, _ mark: SharedMark) -> Bool {
    let (isQueued, mustStart) = state.withLock { state -> (Bool, Bool) in
      guard state.redis.admit(variant.body.count) else { return (false, false) }
      state.queue.append((variant, mark))
      defer { state.isDraining = true }
      return (true, !state.isDraining)
    }
    // As above: it is for all variants.
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
      state.redis.end(next.variant.body.count)
      return next
    }
  }
}
