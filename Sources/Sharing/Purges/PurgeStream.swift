// PurgeStream: publishes this machine's purges, and applies those of the others.

import Core
import Synchronization

/// A machine's end of the purge stream. `PurgeStream+Reading` is the other half.
final class PurgeStream: Sendable {
  /// What the reader does with purges of other machines.
  struct Application: Sendable {
    /// Applies one. If it throws, the purge is in force and not durable.
    let apply: @Sendable (PurgeScope) async throws(ImageError) -> Void
    /// Makes those durable for which `apply` could not.
    let record: @Sendable () async throws(ImageError) -> Void
  }

  /// The purges that wait for Redis, and which of their states is on disk.
  private struct Journal {
    var outbox: PurgeOutbox
    var version = 0
    var written = 0
  }

  let counters = PurgeCounters()
  private let client: RedisClient
  /// The connection of the reader, which waits for entries.
  let reader: RedisClient
  let commands: PurgeCommands
  let files: FleetFiles
  let threads = BlockingThreads(name: "pictor-fleet", threads: 1)
  let retryInterval: Duration
  let log: Log
  /// Tells this machine's entries from those of others. A new one at each start.
  let machine = String(UInt64.random(in: 0...(.max)), radix: 36)
  let applied: Lock<AppliedPosition?>
  /// What the disk has refused.
  let positionFile = Lock(PositionFile())
  let history: Lock<PurgeHistory>
  private let filter: Lock<CacheKeyFilter>
  /// Whether this machine has applied all that the stream had a moment ago.
  let isCurrent = Atomic<Bool>(false)
  /// Whether the stream was found gone, so the reader has to begin a new one.
  let isGone = Atomic<Bool>(false)
  let lastRead = Lock<ContinuousClock.Instant?>(nil)
  /// The connections of the reader so far.
  let connections = Counter()
  /// Purges of an earlier run that wait for Redis. The crash that ended it may have lost them here.
  let restored: [PurgeScope]
  private let journal: Lock<Journal>
  private let isRetrying = Atomic<Bool>(false)
  /// The number of this machine's last purge.
  private let lastNumber: Atomic<Int>

  /// Reads the files. Blocks, so it must not run in a task.
  init(
    client: RedisClient, reader: RedisClient, prefix: String, folder: String?,
    retryInterval: Duration, filter: CacheKeyFilter = CacheKeyFilter(), log: Log
  ) {
    self.filter = Lock(filter)
    self.client = client
    self.reader = reader
    commands = PurgeCommands(prefix: prefix)
    files = FleetFiles(folder: folder)
    self.retryInterval = retryInterval
    self.log = log
    let waiting = PurgeOutbox(files.readPurges())
    restored = waiting.scopes
    var history = PurgeHistory()
    for (scope, number) in waiting.oldest(.max) { history.pending.add(scope, number: number) }
    self.history = Lock(history)
    lastNumber = Atomic(waiting.lastNumber)
    journal = Lock(Journal(outbox: waiting))
    applied = Lock(files.readPosition())
  }

  /// Whether this machine has applied all purges that the stream had at the last read.
  var isSynchronised: Bool { isCurrent.load(ordering: .acquiring) }

  /// The number of purges that wait for Redis.
  var waiting: Int { journal.withLock { $0.outbox.scopes.count } }

  /// Seconds since the stream was last read to its end; -1 if it never was.
  var age: Double {
    lastRead.withLock { $0 }.map { ($0.duration(to: .now) / .milliseconds(1)) / 1_000 } ?? -1
  }

  /// What this machine has applied; `nil` while it may have missed a purge.
  var mark: SharedMark? {
    guard isSynchronised, let applied = applied.withLock({ $0 }) else { return nil }
    return SharedMark(
      epoch: applied.epoch, milliseconds: applied.position.milliseconds,
      number: applied.position.number)
  }

  /// Whether no purge covers a shared entry, and this machine would know.
  func allows(_ key: CacheKey, mark: SharedMark) -> Bool {
    guard isSynchronised else { return false }
    let filter = filter.withLock { $0 }
    return history.withLock { $0.allows(key, mark: mark, filter: filter) }
  }

  /// Replaces the rules that assign tags.
  func apply(_ filter: CacheKeyFilter) { self.filter.withLock { $0 = filter } }

  // MARK: Publishing

  /// Notes a purge before it is applied here. Returns its number.
  func begin(_ scope: PurgeScope) -> Int {
    let number = lastNumber.wrappingAdd(1, ordering: .relaxed).newValue
    history.withLock { $0.pending.add(scope, number: number) }
    return number
  }

  /// Publishes a purge that is applied here. If Redis is away, the purge is in the journal when this returns.
  ///
  /// - Throws: `internal` if the journal cannot be written. That is tried again until it can.
  func publish(
    _ scope: PurgeScope, number: Int, isDurable: Bool
  ) async throws(ImageError) {
    // Before the reader meets it in the stream: the position in the file must not be after it.
    if !isDurable { positionFile.withLock { $0.refuse() } }
    if client.isReady, isSynchronised,
      let reply = try? await client.send([commands.add(scope, number: number, from: machine)])
        .first,
      isAdded(reply)
    {
      counters.published.add()
      history.withLock { $0.pending.acknowledge(scope, number: number) }
      return
    }
    guard await keep({ $0.add(scope, number: number) }) else {
      throw .internal(detail: "a purge cannot be recorded until Redis is back")
    }
  }

  /// Whether a purge is in the stream. Notes a stream that is gone.
  private func isAdded(_ reply: RedisReply) -> Bool {
    if reply == .none { isGone.store(true, ordering: .releasing) }
    if case .bytes = reply { return true }
    return false
  }

  /// Delivers purges that waited. Returns when all are delivered, or when one could not be. For the reader, whose
  /// connection is free meanwhile: on the other one, look-ups would wait behind them.
  func deliver() async {
    while true {
      let batch = journal.withLock { $0.outbox.oldest(100) }
      guard !batch.isEmpty,
        let replies = try? await reader.send(
          batch.map { commands.add($0.scope, number: $0.number, from: machine) },
          within: .seconds(2))
      else { return }
      let delivered = zip(batch, replies).filter { isAdded($1) }.map(\.0)
      counters.published.add(delivered.count)
      history.withLock { history in
        for (scope, number) in delivered { history.pending.acknowledge(scope, number: number) }
      }
      await keep { $0.remove(delivered) }
      if delivered.count < batch.count { return }
    }
  }

  /// Delivers purges again that Redis acknowledged, and lost before this machine read them.
  func deliverAgain(_ purges: [(scope: PurgeScope, number: Int)]) async {
    guard !purges.isEmpty else { return }
    log.warning("Redis has lost purges; they are delivered again")
    await keep { outbox in
      for (scope, number) in purges { outbox.add(scope, number: number) }
    }
  }

  /// Changes the journal, in memory and on disk. Returns whether it is on disk.
  @discardableResult private func keep(
    _ change: @Sendable (inout PurgeOutbox) -> Void
  ) async -> Bool {
    let version = journal.withLock { journal in
      change(&journal.outbox)
      journal.version += 1
      // Before the reader can deliver it: what is delivered is not pending again.
      if journal.outbox.isCollapsed {
        history.withLock { $0.pending.collapse(upTo: journal.outbox.lastNumber) }
      }
      return journal.version
    }
    let isWritten = try? await threads.value { [self] in write(upTo: version) }
    if isWritten == true { return true }
    if !isRetrying.exchange(true, ordering: .relaxed) {
      log.error("purges that wait for Redis cannot be written, and do not outlive this process")
      retry()
    }
    return false
  }

  /// Writes the journal again until that succeeds.
  private func retry() {
    Task.detached { [weak self] in
      while true {
        try? await Task.sleep(for: .seconds(1))
        guard let self else { return }
        // Before the attempt: a change that fails after it begins another one.
        isRetrying.store(false, ordering: .sequentiallyConsistent)
        let version = journal.withLock { $0.version }
        if (try? await threads.value { [self] in write(upTo: version) }) == true {
          log.info("purges that wait for Redis can be written again")
          return
        }
        if isRetrying.exchange(true, ordering: .sequentiallyConsistent) { return }
      }
    }
  }

  /// Writes the journal, unless a later state than `version` is on disk: changes at one time are one write. Called on one
  /// thread, so a later file has later purges.
  private func write(upTo version: Int) -> Bool {
    let journal = self.journal.withLock { $0 }
    guard journal.written < version else { return true }
    guard (try? files.write(journal.outbox.scopes)) != nil else { return false }
    self.journal.withLock { $0.written = journal.version }
    return true
  }
}
