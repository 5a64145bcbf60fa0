// SourceTier: sources that machines share: their metadata in Redis, their bytes in a store.

import Model
import Platform
import Telemetry

/// The sources that machines share. An entry in Redis has the mark, the metadata and the SHA-256 of the bytes, by which
/// the store has them. So bytes are checked by their name, and a renewed source is written to Redis only.
final class SourceTier: SharedSources {
  private struct Item {
    let source: Source
    let mark: SharedMark
    let lease: HeldLease?
  }

  private struct State {
    var queue = Deque<Item>()
    var bytes = 0
    var running = 0
    /// Digests of bytes that the store has, as far as this machine knows. One that it lost is noticed by its next
    /// reader.
    var stored = BoundedTable<String, Bool>(limit: 4_096)
    /// Versions that were removed, by the source's key: a write may still be on its way, and other machines may write
    /// them again.
    var removed = BoundedTable<CacheKey, UInt64>(limit: 4_096)
    /// How long the last write took.
    var lastWrite = Duration.zero
  }

  /// The most sources, and their bytes, that wait to be written. They are those of the budget for downloads, or in files.
  private static let queueLimit = 1_024
  private static let queueBytes = 32 << 20
  /// The longest wait and write, as the last write lets expect them, in which a source keeps its lease.
  private static let leaseBound = Duration.seconds(1)
  /// The most sources that are written at a time.
  private static let concurrentWrites = 4

  let counters = SharedCounters()
  private let client: RedisClient
  private let stream: PurgeStream
  private let store: any SharedStore
  private let coding: any SourceCoding
  private let prefix: String
  private let limit: Int
  private let leases: FleetLeases?
  private let failures: SharedFailures?
  /// Computes digests of what is written. A stalled disk must not delay reads.
  private let writing = BlockingThreads(name: "pictor-share", threads: 1)
  /// Computes digests of what was read, in memory.
  private let reading = BlockingThreads(name: "pictor-check", threads: 1)
  private let state = Lock(State())

  /// - Parameters:
  ///   - store: has the bytes.
  ///   - limit: the largest source in bytes.
  ///   - leases: the leases of downloads; `nil` without leases.
  ///   - failures: the shared failures; `nil` if they are not shared.
  init(
    client: RedisClient, stream: PurgeStream, store: any SharedStore, coding: any SourceCoding,
    prefix: String, limit: Int, leases: FleetLeases?, failures: SharedFailures? = nil
  ) {
    self.client = client
    self.stream = stream
    self.store = store
    self.coding = coding
    self.prefix = prefix
    self.limit = limit
    self.leases = leases
    self.failures = failures
  }

  /// The figures, as `/stats` shows them.
  var figures: SharedSourceFigures {
    var figures = SharedSourceFigures()
    figures.hits = counters.hits.value
    figures.misses = counters.misses.value
    figures.refused = counters.refused.value
    figures.stores = counters.stores.value
    figures.dropped = counters.dropped.value
    figures.waiting = state.withLock { $0.queue.count + $0.running }
    return figures
  }

  // MARK: Reading

  func source(_ request: SharedSourceRequest) async -> LeaseOutcome<Source> {
    guard store.isReady, stream.isSynchronised else { return .none }
    let name = LeaseName(.source, of: request.key)
    let look = RedisCommand("GET", prefix + name.entry)
    guard let leases else {
      let generation = request.generation()
      guard let reply = try? await client.send([look]).first,
        let found = await read(reply, for: request, generation: generation)
      else { return .none }
      return .shared(found)
    }
    let outcome: LeaseOutcome<Source> = await leases.lease(
      of: name, from: request.key, waits: true, look: look, generation: request.generation
    ) { reply, generation in
      await read(reply, for: request, generation: generation)
    }
    guard outcome.mayFollowFailure, !Task.isCancelled,
      let failure = await failures?.failure(of: request.key)
    else { return outcome }
    outcome.endLease()
    return .failed(failure)
  }

  private func read(
    _ reply: RedisReply, for request: SharedSourceRequest, generation: Int
  ) async -> Source? {
    guard case .bytes(let bytes) = reply else {
      counters.misses.add()
      return nil
    }
    guard let (mark, content) = SharedEntry.read(bytes), let entry = SourceEntry(content),
      entry.count <= limit,
      let (freshness, make) = entry.metadata.withUnsafeBytes({
        coding.decode($0, as: request.key, generation: generation)
      }), isAllowed(request.key, mark)
    else {
      counters.refused.add()
      return nil
    }
    // Before the bytes are asked for.
    guard request.accepts(freshness) else {
      counters.misses.add()
      return nil
    }
    guard let file = await file(of: entry) else { return nil }
    let source = make(file)
    // Checked last, too: a purge that arrives meanwhile counts.
    guard isAllowed(request.key, mark), !isRemoved(source) else {
      counters.refused.add()
      return nil
    }
    counters.hits.add()
    return source
  }

  private func isAllowed(_ key: CacheKey, _ mark: SharedMark) -> Bool {
    stream.allows(key, mark: mark)
  }

  private func file(of entry: SourceEntry) async -> FileRegion? {
    switch await store.read(entry.name) {
    case .found(let file):
      guard file.count == entry.count,
        (try? await reading.value(of: { FileDigest.sha256(of: file) })) == entry.digest
      else {
        forget(entry)
        counters.refused.add()
        return nil
      }
      state.withLock { $0.stored.setNewest(true, for: entry.digest) }
      return file
    case .absent:
      forget(entry)
      counters.misses.add()
      return nil
    case .unavailable:
      counters.misses.add()
      return nil
    }
  }

  /// The next write of these bytes sends them.
  private func forget(_ entry: SourceEntry) { state.withLock { $0.stored[entry.digest] = nil } }

  // MARK: Removing

  func remove(_ key: CacheKey, version: UInt64) {
    state.withLock { $0.removed.setNewest(version, for: key) }
    client.send([delete(key)], on: .commands, within: nil) { _ in }
  }

  private func delete(_ key: CacheKey) -> RedisCommand {
    RedisCommand("DEL", prefix + LeaseName(.source, of: key).entry)
  }

  private func isRemoved(_ source: Source) -> Bool {
    state.withLock { $0.removed[source.key] } == source.version
  }

  // MARK: Writing

  func store(_ source: Source, since mark: SharedMark) {
    let count = source.file.count
    // Machines take fresh sources only.
    guard count > 0, count <= limit, source.freshness.timeToLive(at: .now) > 0 else { return }
    guard store.isReady, client.isReady() else { return counters.dropped.add() }
    let (isQueued, mustStart) = state.withLock { state -> (Bool, Bool) in
      // One that is larger than the queue is queued alone.
      guard state.queue.count < Self.queueLimit,
        state.bytes == 0 || count <= Self.queueBytes - state.bytes
      else { return (false, false) }
      // Others should not wait for a slow store: they would load the source in less time.
      let wait = state.lastWrite * (state.queue.count / Self.concurrentWrites + 1)
      let lease = wait <= Self.leaseBound ? leases?.claim(LeaseName(.source, of: source.key)) : nil
      state.queue.append(Item(source: source, mark: mark, lease: lease))
      state.bytes += count
      let mustStart = state.running < Self.concurrentWrites
      if mustStart { state.running += 1 }
      return (true, mustStart)
    }
    if !isQueued { counters.dropped.add() }
    // It works for all sources, so it inherits neither priority nor client of this one.
    if mustStart { Task.detached { [self] in await drain() } }
  }

  private func drain() async {
    while let item = next() {
      let start = ContinuousClock.now
      let isWritten = await write(item)
      (isWritten ? counters.stores : counters.dropped).add()
      state.withLock { state in
        state.bytes -= item.source.file.count
        state.lastWrite = start.duration(to: .now)
      }
    }
  }

  private func next() -> Item? {
    state.withLock { state in
      guard let next = state.queue.popFirst() else {
        state.running -= 1
        return nil
      }
      return next
    }
  }

  private func write(_ item: Item) async -> Bool {
    let source = item.source
    let life = VariantTier.lifetime(of: source.freshness, at: .now)
    let milliseconds = life * 1_000
    guard let digest = try? await writing.value(of: { FileDigest.sha256(of: source.file) }),
      await storeBytes(source.file, digest: digest, life: life), !isRemoved(source)
    else {
      if let lease = item.lease { leases?.end(lease, admitting: nil) }
      return false
    }
    let entry = SourceEntry(
      digest: digest, count: source.file.count, metadata: coding.encode(source))
    let bytes = SharedEntry.bytes(item.mark, entry.bytes)
    let isWritten = await put(bytes, of: source, for: milliseconds, ending: item.lease)
    // It may have been removed after it was compared.
    if isRemoved(source) { client.send([delete(source.key)], on: .commands, within: nil) { _ in } }
    return isWritten
  }

  private func put(
    _ bytes: [UInt8], of source: Source, for milliseconds: Int, ending lease: HeldLease?
  ) async -> Bool {
    if let leases, let lease {
      let reply = try? await client.send([leases.write(bytes, life: milliseconds, ending: lease)])
        .first
      return leases.hasWritten(lease, reply)
    }
    let command = RedisCommand(
      setting: prefix + LeaseName(.source, of: source.key).entry, to: bytes,
      milliseconds: milliseconds)
    return (try? await client.send([command]).first) == .status("OK")
  }

  /// Returns whether the store has the bytes.
  private func storeBytes(_ file: FileRegion, digest: String, life: Int) async -> Bool {
    if state.withLock({ $0.stored[digest] }) != nil { return true }
    guard await store.write(SourceEntry.name(of: digest), head: [], body: file, lifetime: life)
    else { return false }
    state.withLock { $0.stored.setNewest(true, for: digest) }
    return true
  }
}
