// VariantTier: variants in Redis and in a bucket, checked like network input.

import Model
import Platform
import Telemetry

/// The variants that machines share: small ones in Redis, all in the bucket. Other machines and the bucket are untrusted.
final class VariantTier: Sendable {
  /// The longest metadata of an entry, and what frames it.
  static let frameLimit = 64 << 10

  let counters = SharedCounters()
  private let client: RedisClient
  private let stream: PurgeStream
  private let coding: any VariantCoding
  private let prefix: String
  private let limit: Int
  private let bucket: S3Bucket?
  private let writer: VariantWriter
  /// Compares checksums: megabytes of them take longer than other tasks should wait.
  private let checking = BlockingThreads(name: "pictor-check", threads: 1)

  /// - Parameters:
  ///   - limit: the largest body in Redis, in bytes; 0: none.
  ///   - bucket: `nil` without one.
  init(
    client: RedisClient, stream: PurgeStream, coding: any VariantCoding, prefix: String,
    limit: Int, bucket: S3Bucket? = nil
  ) {
    self.client = client
    self.stream = stream
    self.coding = coding
    self.prefix = prefix
    self.limit = limit
    self.bucket = bucket
    writer = VariantWriter(
      client: client, coding: coding, prefix: prefix, limit: limit, bucket: bucket,
      counters: counters)
  }

  /// Variants that wait to be written.
  var waiting: Int { writer.waiting }

  /// Queues a variant for other machines, or drops it.
  func store(_ variant: Variant, since mark: SharedMark) { writer.store(variant, since: mark) }

  /// What a look-up found.
  private enum Look {
    /// A variant and its mark, which has to be compared with the purges yet.
    case found(Variant, SharedMark)
    /// An entry that is purged, damaged, expired or of another version.
    case refused
    /// No entry, or no answer.
    case absent
  }

  /// Returns the variant that no purge covers. The bucket is asked if Redis does not have it.
  func variant(for key: CacheKey, generation: Int) async -> Variant? {
    guard limit > 0 || bucket != nil, stream.isSynchronised else { return nil }
    let name = SharedEntry.name(of: key)
    guard let reply = try? await client.send([RedisCommand("GET", prefix + name)]).first else {
      return nil
    }
    var look: Look? = nil
    if case .bytes(let bytes) = reply { look = read(bytes, as: key, generation: generation) }
    if look == nil { look = await inBucket(key, name: name, generation: generation) }
    switch look {
    // Decoded first, checked last: a purge that arrives meanwhile counts.
    case .found(let variant, let mark)? where stream.allows(key, mark: mark):
      counters.hits.add()
      return variant
    case .found?, .refused?: counters.refused.add()
    case .absent?, nil: counters.misses.add()
    }
    return nil
  }

  /// Reads an entry of Redis; `nil` for one that says that the bucket has the variant.
  private func read(_ bytes: [UInt8], as key: CacheKey, generation: Int) -> Look? {
    bytes.withUnsafeBytes { bytes in
      guard let entry = SharedEntry.parse(bytes) else { return .refused }
      switch entry.kind {
      case .whole:
        guard entry.content.count <= limit + Self.frameLimit,
          let variant = coding.decode(entry.content, as: key, generation: generation)
        else { return .refused }
        return .found(variant, entry.mark)
      case .inBucket:
        return entry.content.isEmpty && stream.allows(key, mark: entry.mark) ? nil : .refused
      case .dated: return .refused
      }
    }
  }

  private func inBucket(_ key: CacheKey, name: String, generation: Int) async -> Look {
    guard let bucket, bucket.isReady, case .found(let region) = await bucket.read(name) else {
      return .absent
    }
    let look = try? await checking.value { [coding] in
      // A sealed file in memory: it neither changes nor waits for a disk.
      guard let bytes = try? ImageBytes(contentsOf: region) else { return Look.absent }
      let buffer = UnsafeRawBufferPointer(start: bytes.baseAddress, count: bytes.count)
      guard let entry = SharedEntry.parse(dated: buffer, at: .now),
        let variant = coding.decode(entry.content, as: key, generation: generation)
      else { return .refused }
      return .found(variant, entry.mark)
    }
    switch look {
    case .refused?: bucket.counters.refused.add()
    case .found(_, let mark)? where !stream.allows(key, mark: mark): bucket.counters.refused.add()
    case .found?, .absent?, nil: break
    }
    return look ?? .absent
  }

  /// Seconds until an entry is useless, at least 1: machines take fresh ones only.
  static func lifetime(of freshness: Freshness, at now: UnixTime) -> Int {
    max(freshness.timeToLive(at: now), 1)
  }
}
