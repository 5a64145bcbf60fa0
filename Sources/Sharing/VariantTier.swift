// VariantTier: variants in Redis and in a bucket, checked like network input.

import Core

/// The variants that machines share: small ones in Redis, all in the bucket. Other machines and the
/// bucket are untrusted. Writes follow the answers.
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
  private let writes = Lock(Writes())
  /// Compares checksums: megabytes of them take longer than other tasks should wait.
  private let checking = BlockingThreads(name: "pictor-check", threads: 1)

  /// - Parameter limit: the largest body in Redis, in bytes; 0: none.
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
  }

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

  // MARK: Writing

  /// The variants that wait for one store.
  private struct Waiting {
    /// The most bytes. They are those of the memory tier's budget.
    private static let byteLimit = 16 << 20

    let countLimit: Int
    var count = 0
    var bytes = 0

    /// Takes room for a variant, or returns `false`. One variant always fits.
    mutating func admit(_ length: Int) -> Bool {
      guard count < countLimit, bytes == 0 || length <= Self.byteLimit - bytes else {
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

  private struct Writes {
    /// Written to Redis one by one: look-ups wait on the same connection behind at most one.
    var queue = Deque<(variant: Variant, mark: SharedMark)>()
    var isDraining = false
    var redis = Waiting(countLimit: 1_024)
    var bucket = Waiting(countLimit: 256)
  }

  /// Variants that wait to be written.
  var waiting: Int { writes.withLock { $0.redis.count + $0.bucket.count } }

  /// Writes a variant in the background, or drops it. Small ones go to Redis and to the bucket,
  /// large ones to the bucket.
  func store(_ variant: Variant, since mark: SharedMark) {
    // Machines take fresh variants only.
    guard case .memory = variant.body, variant.info.freshness.timeToLive(at: .now) > 0 else {
      return
    }
    let length = variant.body.count
    let fitsRedis = limit > 0 && length <= limit
    let bucket = bucket.flatMap { length <= $0.entryLimit - Self.frameLimit ? $0 : nil }
    guard fitsRedis || bucket != nil else { return }
    guard client.isReady else { return counters.dropped.add() }
    let isForRedis = fitsRedis && queue(variant, mark)
    let isForBucket = bucket?.isReady == true && writes.withLock { $0.bucket.admit(length) }
    if fitsRedis ? !isForRedis : !isForBucket { counters.dropped.add() }
    if !isForBucket { bucket?.counters.dropped.add() }
    guard isForBucket, let bucket else { return }
    // For all machines: it inherits neither priority nor client of the request that made the
    // variant.
    Task.detached { [self] in
      let isWritten = await write(variant, mark, to: bucket)
      // Redis says that the bucket has it.
      if !fitsRedis, isWritten {
        await put(SharedEntry.bytes(mark, [], as: .inBucket), for: variant)
      } else if !fitsRedis {
        counters.dropped.add()
      }
      writes.withLock { $0.bucket.end(length) }
    }
  }

  /// Writes an entry to the bucket. Returns whether the bucket has confirmed it.
  private func write(_ variant: Variant, _ mark: SharedMark, to bucket: S3Bucket) async -> Bool {
    guard let content = coding.encode(variant) else { return false }
    let life = Self.lifetime(of: variant.info.freshness, at: .now)
    let expires = UnixTime(seconds: UnixTime.now.seconds + life)
    return await bucket.write(
      SharedEntry.name(of: variant.key), SharedEntry.bytes(mark, content, expires: expires),
      lifetime: life)
  }

  /// Queues a variant for Redis. Returns `false` if the queue is full.
  private func queue(_ variant: Variant, _ mark: SharedMark) -> Bool {
    let (isQueued, mustStart) = writes.withLock { writes -> (Bool, Bool) in
      guard writes.redis.admit(variant.body.count) else { return (false, false) }
      writes.queue.append((variant, mark))
      defer { writes.isDraining = true }
      return (true, !writes.isDraining)
    }
    // As above: it is for all machines.
    if mustStart {
      Task.detached { [self] in while let next = next() { await put(next.variant, next.mark) } }
    }
    return isQueued
  }

  private func next() -> (variant: Variant, mark: SharedMark)? {
    writes.withLock { writes in
      let next = writes.queue.popFirst()
      if let next { writes.redis.end(next.variant.body.count) } else { writes.isDraining = false }
      return next
    }
  }

  private func put(_ variant: Variant, _ mark: SharedMark) async {
    guard let content = coding.encode(variant) else { return counters.dropped.add() }
    await put(SharedEntry.bytes(mark, content), for: variant)
  }

  /// Writes an entry to Redis.
  private func put(_ bytes: [UInt8], for variant: Variant) async {
    let command = RedisCommand(
      setting: prefix + SharedEntry.name(of: variant.key), to: bytes,
      milliseconds: Self.lifetime(of: variant.info.freshness, at: .now) * 1_000)
    let isWritten = (try? await client.send([command]).first) == .status("OK")
    (isWritten ? counters.stores : counters.dropped).add()
  }
}

/// The bytes of an entry: a version, the mark, a SHA-256 in hexadecimal, and the content that it is
/// of.
enum SharedEntry {
  enum Kind: UInt8 {
    /// The content is a variant.
    case whole = 1
    /// The variant is in the bucket. No content.
    case inBucket = 2
    /// The content is the expiry, in seconds since 1970 as 8 bytes, little-endian, and a variant.
    case dated = 3
  }

  /// The name of a variant's entry, after the fleet's prefix.
  static func name(of key: CacheKey) -> String { "v:" + HMAC.hexSHA256(of: Array(key.text.utf8)) }

  /// Returns the bytes of an entry in the bucket, which has no TTL that readers could rely on.
  static func bytes(_ mark: SharedMark, _ content: [UInt8], expires: UnixTime) -> [UInt8] {
    var dated: [UInt8] = []
    dated.reserveCapacity(8 + content.count)
    withUnsafeBytes(of: Int64(expires.seconds).littleEndian) { dated += $0 }
    dated += content
    return bytes(mark, dated, as: .dated)
  }

  /// Reads untrusted bytes of the bucket; `nil` for an entry that is damaged, expired or of another
  /// kind. The content is valid as long as the bytes.
  static func parse(
    dated bytes: UnsafeRawBufferPointer, at now: UnixTime
  ) -> (mark: SharedMark, content: UnsafeRawBufferPointer)? {
    guard let entry = parse(bytes), entry.kind == .dated, entry.content.count > 8,
      now.seconds < entry.content.loadUnaligned(as: Int64.self).littleEndian
    else { return nil }
    return (entry.mark, UnsafeRawBufferPointer(rebasing: entry.content[8...]))
  }

  static func bytes(_ mark: SharedMark, _ content: [UInt8], as kind: Kind = .whole) -> [UInt8] {
    var bytes = [kind.rawValue, UInt8(clamping: mark.epoch.utf8.count)]
    bytes.reserveCapacity(2 + mark.epoch.utf8.count + 80 + content.count)
    bytes += mark.epoch.utf8.prefix(255)
    for number in [mark.milliseconds, mark.number] {
      withUnsafeBytes(of: number.littleEndian) { bytes += $0 }
    }
    bytes += HMAC.hexSHA256(of: content).utf8
    bytes += content
    return bytes
  }

  /// Reads untrusted bytes. The content is valid as long as the bytes.
  static func parse(
    _ bytes: UnsafeRawBufferPointer
  ) -> (kind: Kind, mark: SharedMark, content: UnsafeRawBufferPointer)? {
    guard bytes.count > 2, let kind = Kind(rawValue: bytes[0]) else { return nil }
    let start = 2 + Int(bytes[1])
    guard bytes.count >= start + 16 + 64 else { return nil }
    func number(at offset: Int) -> UInt64 {
      bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self).littleEndian
    }
    let content = UnsafeRawBufferPointer(rebasing: bytes[(start + 80)...])
    guard let epoch = String(validating: bytes[2..<start], as: UTF8.self),
      bytes[(start + 16)..<(start + 80)].elementsEqual(HMAC.hexSHA256(of: content).utf8)
    else { return nil }
    let mark = SharedMark(
      epoch: epoch, milliseconds: number(at: start), number: number(at: start + 8))
    return (kind, mark, content)
  }
}

/// Counts of the shared tier in Redis.
final class SharedCounters: Sendable {
  let hits = Counter(
    "hits", "pictor_fleet_lookups_total", "Look-ups in the shared tier, by result.",
    ["result": "hit"])
  let misses = Counter(
    "misses", "pictor_fleet_lookups_total", "Absent entries.", ["result": "miss"])
  let refused = Counter(
    "refused", "pictor_fleet_lookups_total", "Entries purged, damaged or of another version.",
    ["result": "refused"])
  let stores = Counter(
    "stores", "pictor_fleet_stores_total", "Variants for the shared tier.", ["result": "written"])
  /// The queue was full, or Redis or the bucket was away or full.
  let dropped = Counter(
    "dropped", "pictor_fleet_stores_total", "Variants not written.", ["result": "dropped"])
}
