// PurgeStream: publishes this machine's purges, and applies those of the others.

import Model
import Platform
import Synchronization
import Telemetry

/// A machine's end of the purge stream. `PurgeStream+Reading` is the other half.
final class PurgeStream: Sendable {
  /// Applies a purge to this machine's tiers.
  typealias Application = @Sendable (PurgeScope) async throws(ImageError) -> Void

  /// The purges that wait for Redis, and which of their states is on disk.
  private struct Journal {
    var outbox: PurgeOutbox
    var version = 0
    var written = 0
  }

  let counters = PurgeCounters()
  let client: RedisClient
  let commands: PurgeCommands
  let files: FleetFiles
  let threads = BlockingThreads(name: "pictor-fleet", threads: 1)
  let retryInterval: Duration
  let log: Log
  /// Tells this machine's entries from those of others. A new one at each start.
  let machine = String(UInt64.random(in: 0...(.max)), radix: 36)
  let applied: Lock<AppliedPosition?>
  let history: Lock<PurgeHistory>
  /// Whether this machine has applied all that the stream had a moment ago.
  let isCurrent = Atomic<Bool>(false)
  /// Whether the stream was found gone, so the reader has to begin a new one.
  let isGone = Atomic<Bool>(false)
  let lastRead = Lock<ContinuousClock.Instant?>(nil)
  /// The connections of the reader so far.
  let connections = Counter()
  private let journal: Lock<Journal>
  /// The number of this machine's last purge.
  private let lastNumber: Atomic<Int>

  /// Reads the files. Blocks, so it must not run in a task.
  init(
    client: RedisClient, prefix: String, folder: String?, retryInterval: Duration, log: Log
  ) {
    self.client = client
    commands = PurgeCommands(prefix: prefix)
    files = FleetFiles(folder: folder)
    self.retryInterval = retryInterval
    self.log = log
    let waiting = PurgeOutbox(files.readPurges())
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
  func allows(
    _ key: CacheKey, mark: SharedMark, filter: CacheKeyFilter, isFailure: Bool = false
  ) -> Bool {
    isSynchronised
      && history.withLock {
        $0.allows(key, mark: mark, filter: filter, isFailure: isFailure)
      }
  }

  // MARK: Publishing

  /// Notes a purge before it is applied here. Returns its number.
  func begin(_ scope: PurgeScope) -> Int {
    let number = lastNumber.wrappingAdd(1, ordering: .relaxed).newValue
    history.withLock { $0.pending.add(scope, number: number) }
    return number
  }

  /// Publishes a purge that is applied here. If Redis is away, the purge is in the journal when this returns.
  func publish(_ scope: PurgeScope, number: Int) async {
    if client.isReady(), isSynchronised,
      let reply = try? await client.send([commands.add(scope, number: number, from: machine)])
        .first,
      isAdded(reply)
    {
      counters.published.add()
      history.withLock { $0.pending.acknowledge(scope, number: number) }
      return
    }
    await keep { $0.add(scope, number: number) }
  }

  /// Whether a purge is in the stream. Notes a stream that is gone.
  private func isAdded(_ reply: RedisReply) -> Bool {
    if reply == .none { isGone.store(true, ordering: .releasing) }
    if case .bytes = reply { return true }
    return false
  }

  /// Delivers purges that waited. Returns when all are delivered, or when one could not be. For the reader, whose line
  /// of the client is free meanwhile: on the other one, look-ups would wait behind them.
  func deliver() async {
    while true {
      let batch = journal.withLock { $0.outbox.oldest(100) }
      guard !batch.isEmpty,
        let replies = try? await client.send(
          batch.map { commands.add($0.scope, number: $0.number, from: machine) }, on: .stream,
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

  /// Changes the journal, in memory and on disk.
  private func keep(_ change: @Sendable (inout PurgeOutbox) -> Void) async {
    let (version, collapsed) = journal.withLock { journal in
      change(&journal.outbox)
      journal.version += 1
      return (
        journal.version, journal.outbox.isCollapsed ? journal.outbox.lastNumber : nil
      )
    }
    if let collapsed { history.withLock { $0.pending.collapse(upTo: collapsed) } }
    let isWritten = try? await threads.value { [self] in write(upTo: version) }
    if isWritten != true {
      log.error("purges that wait for Redis cannot be written, and do not outlive this process")
    }
  }

  /// Writes the journal, unless a later state than `version` is on disk: so many changes at a time are one file. Called
  /// on one thread, so a later file has later purges.
  private func write(upTo version: Int) -> Bool {
    let (scopes, current) = journal.withLock { journal in
      (journal.written < version ? journal.outbox.scopes : nil, journal.version)
    }
    guard let scopes else { return true }
    guard (try? files.write(scopes)) != nil else { return false }
    journal.withLock { $0.written = current }
    return true
  }
}

/// Counts since the start.
final class PurgeCounters: Sendable {
  /// Purges of this machine that are in the stream.
  let published = Counter()
  /// Purges of other machines that were applied, and purges of everything after a loss.
  let applied = Counter()
}
