// VariantTier: variants in Redis and in a bucket, checked like network input.

import Model
import Platform
import Telemetry

/// The variants that machines share.
final class VariantTier: Sendable {
  let counters = SharedCounters()
  private let client: RedisClient
  private let stream: PurgeStream
  private let coding: any VariantCoding
  private let prefix: String
  private let limit: Int
  private let objects: BucketVariants?
  private let writer: VariantWriter

  /// - Parameters:
  ///   - limit: the largest body in Redis, in bytes; 0: none.
  ///   - objects: the variants in a bucket; `nil` without one.
  init(
    client: RedisClient, stream: PurgeStream, coding: any VariantCoding, prefix: String,
    limit: Int, objects: BucketVariants? = nil
  ) {
    self.client = client
    self.stream = stream
    self.coding = coding
    self.prefix = prefix
    self.limit = limit
    self.objects = objects
    writer = VariantWriter(
      client: client, coding: coding, prefix: prefix, limit: limit, objects: objects,
      counters: counters)
  }

  /// Variants that wait to be written.
  var waiting: Int { writer.waiting + (objects?.waiting ?? 0) }

  /// Queues a variant for other machines, or drops it.
  func store(_ variant: Variant, since mark: SharedMark) { writer.store(variant, since: mark) }

  /// What a look-up found.
  private enum Look {
    case found(Variant)
    case refused
    case absent
  }

  /// Returns the variant that no purge covers. The bucket is asked if Redis does not have it.
  func variant(for key: CacheKey, generation: Int) async -> Variant? {
    guard limit > 0 || objects != nil, stream.isSynchronised else { return nil }
    let name = SharedEntry.name(of: key)
    guard let reply = try? await client.send([RedisCommand("GET", prefix + name)]).first else {
      return nil
    }
    let look: Look
    if case .bytes(let bytes) = reply {
      look = await read(bytes, as: key, name: name, generation: generation)
    } else {
      look = await inBucket(key, name: name, generation: generation)
    }
    switch look {
    case .found(let variant):
      counters.hits.add()
      return variant
    case .refused: counters.refused.add()
    case .absent: counters.misses.add()
    }
    return nil
  }

  /// Reads an entry of Redis, or the one in the bucket that it stands for.
  private func read(
    _ bytes: [UInt8], as key: CacheKey, name: String, generation: Int
  ) async -> Look {
    let (mark, variant, isInBucket) = bytes.withUnsafeBytes {
      bytes -> (SharedMark?, Variant?, Bool) in
      guard let entry = SharedEntry.parse(bytes) else { return (nil, nil, false) }
      switch entry.kind {
      case .whole:
        guard entry.content.count <= limit + BucketVariants.frameLimit else {
          return (nil, nil, false)
        }
        return (entry.mark, coding.decode(entry.content, as: key, generation: generation), false)
      case .inBucket: return (entry.mark, nil, entry.content.isEmpty)
      case .dated: return (nil, nil, false)
      }
    }
    // Decoded first, checked last: a purge that arrives meanwhile counts.
    guard let mark, variant != nil || isInBucket, stream.allows(key, mark: mark)
    else { return .refused }
    if let variant { return .found(variant) }
    return await inBucket(key, name: name, generation: generation)
  }

  private func inBucket(_ key: CacheKey, name: String, generation: Int) async -> Look {
    guard let objects else { return .absent }
    switch await objects.variant(for: key, name: name, generation: generation) {
    case .none: return .absent
    case .refused: return .refused
    case .found(let mark, let variant):
      guard stream.allows(key, mark: mark) else {
        objects.store.counters.refused.add()
        return .refused
      }
      return .found(variant)
    }
  }

  /// Seconds until an entry is useless, at least 1: machines take fresh ones only.
  static func lifetime(of freshness: Freshness, at now: UnixTime) -> Int {
    max(freshness.timeToLive(at: now), 1)
  }
}
