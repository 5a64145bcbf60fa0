// SharedTier: variants in Redis, written behind and checked like network input.

import CGLib
import Model
import Platform
import Telemetry

/// The variants that machines share.
final class SharedTier: Sendable {
  private struct State {
    var queue = Deque<(variant: Variant, mark: SharedMark)>()
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
  private let state = Lock(State())

  /// - Parameter limit: the largest body in bytes; 0 turns the tier off.
  init(
    client: RedisClient, stream: PurgeStream, coding: any VariantCoding, filter: CacheKeyFilter,
    prefix: String, limit: Int
  ) {
    self.client = client
    self.stream = stream
    self.coding = coding
    self.filter = filter
    self.prefix = prefix + "v:"
    self.limit = limit
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

  // MARK: Writing

  /// Queues a variant, or drops it.
  func store(_ variant: Variant, since mark: SharedMark) {
    guard case .memory = variant.body, variant.body.count <= limit else { return }
    guard client.isReady() else { return counters.dropped.add() }
    let (isQueued, mustStart) = state.withLock { state -> (Bool, Bool) in
      guard state.queue.count < Self.queueLimit,
        state.bytes + variant.body.count <= Self.queueBytes
      else { return (false, false) }
      state.queue.append((variant, mark))
      state.bytes += variant.body.count
      defer { state.isDraining = true }
      return (true, !state.isDraining)
    }
    if !isQueued { counters.dropped.add() }
    if mustStart { Task { await drain() } }
  }

  private func drain() async {
    while let (variant, mark) = next() {
      guard let content = coding.encode(variant) else { continue }
      let command = RedisCommand([
        Array("SET".utf8), Array(name(of: variant.key).utf8), SharedEntry.bytes(mark, content),
        Array("PX".utf8),
        Array("\(Self.lifetime(of: variant.info.freshness, at: .now) * 1_000)".utf8),
      ])
      let reply = try? await client.send([command]).first
      (reply == .status("OK") ? counters.stores : counters.dropped).add()
    }
  }

  private func next() -> (Variant, SharedMark)? {
    state.withLock { state in
      guard let next = state.queue.popFirst() else {
        state.isDraining = false
        return nil
      }
      state.bytes -= next.variant.body.count
      return next
    }
  }

  /// Seconds until a variant is useless: its lifetime and the longer stale window, at least a minute.
  static func lifetime(of freshness: Freshness, at now: UnixTime) -> Int {
    let window = max(freshness.staleWhileRevalidate, freshness.staleIfError)
    return max(freshness.timeToLive(at: now) + (freshness.mayBeStale ? window : 0), 60)
  }

  private func name(of key: CacheKey) -> String {
    prefix + SharedEntry.digest(Array(key.text.utf8)[...])
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

/// The bytes of an entry: a version, the mark, a SHA-256 in hexadecimal, and the content that it is of.
enum SharedEntry {
  private static let version: UInt8 = 1

  static func bytes(_ mark: SharedMark, _ content: [UInt8]) -> [UInt8] {
    var bytes = [version, UInt8(clamping: mark.epoch.utf8.count)]
    bytes += mark.epoch.utf8.prefix(255)
    for number in [mark.milliseconds, mark.number] {
      withUnsafeBytes(of: number.littleEndian) { bytes += $0 }
    }
    return bytes + digest(content[...]).utf8 + content
  }

  /// Reads untrusted bytes.
  static func read(_ bytes: [UInt8]) -> (SharedMark, ArraySlice<UInt8>)? {
    guard bytes.count > 2, bytes[0] == version else { return nil }
    let start = 2 + Int(bytes[1])
    guard bytes.count >= start + 16 + 64 else { return nil }
    func number(at offset: Int) -> UInt64 {
      bytes[offset..<offset + 8].reversed().reduce(0) { $0 << 8 | UInt64($1) }
    }
    let content = bytes[(start + 80)...]
    guard let epoch = String(validating: bytes[2..<start], as: UTF8.self),
      bytes[(start + 16)..<(start + 80)].elementsEqual(digest(content).utf8)
    else { return nil }
    let mark = SharedMark(
      epoch: epoch, milliseconds: number(at: start), number: number(at: start + 8))
    return (mark, content)
  }

  /// The SHA-256 of bytes in hexadecimal.
  static func digest(_ bytes: ArraySlice<UInt8>) -> String {
    bytes.withUnsafeBufferPointer { buffer in
      guard
        let text = g_compute_checksum_for_data(
          G_CHECKSUM_SHA256, buffer.baseAddress, gsize(buffer.count))
      else {
        return ""
      }
      defer { g_free(text) }
      return String(cString: text)
    }
  }
}
