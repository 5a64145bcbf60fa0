// SharedTier: variants in Redis, written behind and checked like network input.

import CGLib
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
  private let failures: SharedFailures?
  private let state = Lock(State())

  /// - Parameters:
  ///   - limit: the largest body in bytes; 0 turns the tier off.
  ///   - leases: the leases that end with a write; `nil` without leases.
  ///   - failures: the shared failures; `nil` if they are not shared.
  init(
    client: RedisClient, stream: PurgeStream, coding: any VariantCoding, filter: CacheKeyFilter,
    prefix: String, limit: Int, leases: FleetLeases? = nil, failures: SharedFailures? = nil
  ) {
    self.client = client
    self.stream = stream
    self.coding = coding
    self.filter = filter
    self.prefix = prefix + "v:"
    self.limit = limit
    self.leases = leases
    self.failures = failures
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

  /// Returns the variant and the failure of its source that no purge covers, in one round trip if there is no failure.
  func look(for key: CacheKey, generation: Int) async -> SharedLookup {
    var commands = limit > 0 ? [RedisCommand("GET", name(of: key))] : []
    if let failures { commands.append(failures.look(for: key.source)) }
    guard !commands.isEmpty, stream.isSynchronised, let replies = try? await client.send(commands),
      replies.count == commands.count
    else { return SharedLookup() }
    var found = SharedLookup()
    if limit > 0 { found.variant = variant(in: replies[0], for: key, generation: generation) }
    found.failure = await failures?.failure(of: key.source, in: replies[replies.count - 1])
    return found
  }

  private func variant(
    in reply: RedisReply, for key: CacheKey, generation: Int
  ) -> Variant? {
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
  func lease(_ request: LeaseRequest) async -> LeaseOutcome {
    guard let leases, limit > 0, stream.isSynchronised else { return .none }
    let digest = Self.digest(of: request.key)
    let outcome = await leases.lease(
      of: request.key, digest: digest, waits: request.waits,
      look: RedisCommand("GET", prefix + digest), generation: request.generation
    ) { reply, generation in
      guard case .bytes(let bytes) = reply,
        let (mark, variant) = read(bytes, as: request.key, generation: generation),
        stream.allows(request.key, mark: mark, filter: filter), await request.accepts(variant)
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

  /// Queues a variant, or drops it.
  func store(_ variant: Variant, since mark: SharedMark) {
    guard case .memory = variant.body, variant.body.count <= limit else { return }
    guard client.isReady() else { return counters.dropped.add() }
    let isQueued = append { state in
      guard state.queue.count < Self.queueLimit,
        state.bytes + variant.body.count <= Self.queueBytes
      else { return false }
      state.queue.append(.write(variant, mark, leases?.claim(variant.key)))
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

  private func name(of key: CacheKey) -> String { prefix + Self.digest(of: key) }

  private static func digest(of key: CacheKey) -> String {
    SharedEntry.digest(Array(key.text.utf8)[...])
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
