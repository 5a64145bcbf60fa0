// PurgeStream: publishes this machine's purges, and applies those of the others.

import Core
import Synchronization

/// A machine's end of the purge stream.
final class PurgeStream: Sendable {
  /// What the reader does with purges of other machines.
  struct Application: Sendable {
    /// Applies one. If it throws, the purge is in force and not durable.
    let apply: @Sendable (PurgeScope) async throws(ImageError) -> Void
    /// Makes those durable for which `apply` could not.
    let record: @Sendable () async throws(ImageError) -> Void
  }

  /// The states of the purges that wait for Redis, and which of them is on disk.
  private struct Journal {
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
  private let journal = Lock(Journal())
  private let isRetrying = Atomic<Bool>(false)

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
    var history = PurgeHistory()
    history.own = OwnPurges(files.readPurges())
    restored = history.own.waiting.map(\.scope)
    self.history = Lock(history)
    applied = Lock(files.readPosition())
  }

  /// Whether this machine has applied all purges that the stream had at the last read.
  var isSynchronised: Bool { isCurrent.load(ordering: .acquiring) }

  /// The number of purges that wait for Redis.
  var waiting: Int { history.withLock { $0.own.waitingCount } }

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
  func begin(_ scope: PurgeScope) -> Int { history.withLock { $0.own.begin(scope) } }

  /// Publishes a purge that is applied here. If Redis is away, the purge is in the journal when
  /// this returns.
  ///
  /// - Throws: `internal` if the journal cannot be written. That is tried again until it can.
  func publish(
    _ scope: PurgeScope, number: Int, isDurable: Bool
  ) async throws(ImageError) {
    // Before the reader meets it in the stream: the position in the file must not be after it.
    if !isDurable { positionFile.withLock { $0.refused += 1 } }
    if client.isReady, isSynchronised,
      let reply = try? await client.send([commands.add(scope, number: number, from: machine)])
        .first,
      isAdded(reply)
    {
      counters.published.add()
      history.withLock { $0.own.acknowledge([(scope, number)]) }
      return
    }
    guard await keep({ $0.wait(scope, number: number) }) else {
      throw .internal(detail: "a purge cannot be recorded until Redis is back")
    }
  }

  /// Whether a purge is in the stream. Notes a stream that is gone.
  private func isAdded(_ reply: RedisReply) -> Bool {
    if reply == .none { isGone.store(true, ordering: .releasing) }
    if case .bytes = reply { return true }
    return false
  }

  /// Delivers purges that waited. Returns when all are delivered, or when one could not be. For the
  /// reader, whose connection is free meanwhile: on the other one, look-ups would wait behind them.
  func deliver() async {
    while true {
      // Sorted outside the lock, for which look-ups wait.
      let batch = history.withLock { $0.own }.waiting.prefix(100)
      guard !batch.isEmpty,
        let replies = try? await reader.send(
          batch.map { commands.add($0.scope, number: $0.number, from: machine) },
          within: .seconds(2))
      else { return }
      let delivered = zip(batch, replies).filter { isAdded($1) }.map(\.0)
      counters.published.add(delivered.count)
      await keep { $0.acknowledge(delivered) }
      if delivered.count < batch.count { return }
    }
  }

  /// Delivers purges again that Redis acknowledged, and lost before this machine read them.
  func deliverAgain(_ purges: [(scope: PurgeScope, number: Int)]) async {
    guard !purges.isEmpty else { return }
    log.warning("Redis has lost purges; they are delivered again")
    await keep { own in
      for (scope, number) in purges { own.wait(scope, number: number) }
    }
  }

  /// Changes the purges that wait, in memory and on disk. Returns whether they are on disk.
  @discardableResult private func keep(
    _ change: @Sendable (inout OwnPurges) -> Void
  ) async -> Bool {
    history.withLock { change(&$0.own) }
    let version = journal.withLock { journal in
      journal.version += 1
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

  /// Writes the journal, unless a later state than `version` is on disk: changes at one time are
  /// one write. Called on one thread, so a later file has later purges.
  private func write(upTo version: Int) -> Bool {
    let journal = self.journal.withLock { $0 }
    guard journal.written < version else { return true }
    let waiting = history.withLock { $0.own }.waiting.map(\.scope)
    guard (try? files.write(waiting)) != nil else { return false }
    self.journal.withLock { $0.written = journal.version }
    return true
  }
}

// MARK: Reading

extension PurgeStream {
  /// Why reading begins again.
  private enum Interruption: Error {
    /// A reply that the stream does not give.
    case unexpected(String)
    /// Redis is away, or what is read does not continue what was read before.
    case broken
  }

  /// How long a read waits for entries.
  private static let block = Duration.seconds(1)
  /// The pause before a failed write is repeated.
  private static let pause = Duration.seconds(1)

  /// Follows the stream until the task is cancelled.
  func run(_ application: Application) async {
    let (ready, signal) = AsyncStream.makeStream(
      of: Void.self, bufferingPolicy: .bufferingNewest(1))
    reader.onReady { [connections] in
      connections.add()
      signal.yield()
    }
    for scope in restored { await enforce(scope, application) }
    // The greeting may have been before.
    signal.yield()
    for await _ in ready {
      while reader.isReady, !Task.isCancelled {
        do throws(Interruption) {
          try await follow(application)
        } catch {
          isCurrent.store(false, ordering: .releasing)
          if case .unexpected(let reply) = error {
            log.warning("the purge stream cannot be read", fields: ["reply": .string(reply)])
          }
        }
        // For each reason: a server that names another epoch each time must not keep the machine
        // busy.
        try? await Task.sleep(for: retryInterval)
      }
    }
    reader.onReady(nil)
  }

  private func follow(_ application: Application) async throws(Interruption) {
    let connection = connections.value
    // Redis has these, unless it has lost them.
    var acknowledged = history.withLock { $0.own.acknowledged }
    let state = try await begin(application)
    history.withLock { history in
      // Trimmed entries are unknown to a history that ends before them.
      if history.epoch != state.epoch || (!state.isWhole && history.position < state.oldest) {
        history.begin(epoch: state.epoch, floor: state.isWhole ? .start : state.oldest)
      }
    }
    // The history of the whole stream, and what was missed, without waiting.
    while !Task.isCancelled {
      let begin = ContinuousClock.now
      let entries = try await entries(
        after: history.withLock { $0.position }, epoch: state.epoch,
        floor: history.withLock { $0.floor })
      // A connection may end and begin while a purge is applied, when nothing is read. Redis may
      // have lost entries in between.
      guard connections.value == connection else { throw .broken }
      if entries.isEmpty, isSynchronised, begin.duration(to: .now) < Self.block / 10 {
        // A server that answers at once must not keep the machine busy.
        try? await Task.sleep(for: Self.block / 20)
      }
      let missed = entries.filter { $0.position > applied.withLock { $0?.position ?? .start } }
      // Many purges are one of everything.
      let isMany = !isSynchronised && missed.count >= PurgeCommands.many
      if isMany { await applyEverything(application, upTo: state.newest, epoch: state.epoch) }
      try await take(entries, application, epoch: state.epoch)
      await repair(application)
      if entries.count < PurgeCommands.batch {
        await deliverAgain(history.withLock { $0.own.missing(of: acknowledged) })
        acknowledged = []
        isCurrent.store(true, ordering: .releasing)
        lastRead.withLock { $0 = .now }
      }
      if waiting > 0 { await deliver() }
      if isGone.exchange(false, ordering: .acquiring) { throw .broken }
    }
  }

  /// Compares what this machine has applied with the stream, and purges everything if it may have
  /// missed a purge.
  private func begin(_ application: Application) async throws(Interruption) -> StreamState {
    let epoch = String(UInt64.random(in: 0...(.max)), radix: 36)
    let before = applied.withLock { $0 }
    var state = try await state(epoch: epoch, lost: "", applied: before?.position)
    var beginning = state.beginning(for: before)
    if beginning == .renewEpoch, let before {
      log.warning("Redis has lost purges; a new epoch begins")
      state = try await self.state(epoch: epoch, lost: state.epoch, applied: before.position)
      beginning = state.beginning(for: before)
    }
    switch beginning {
    case .read(let position):
      if before == nil { await move(to: position, epoch: state.epoch) }
    case .purgeEverything(let position):
      log.warning("purges of the fleet may have been missed; everything is purged")
      await applyEverything(application, upTo: position, epoch: state.epoch)
    case .renewEpoch: throw .unexpected("an epoch that does not change")
    }
    return state
  }

  private func state(
    epoch: String, lost: String, applied: StreamPosition?
  ) async throws(Interruption) -> StreamState {
    let reply = try await send([commands.state(epoch: epoch, lost: lost, applied: applied)])[0]
    guard let state = commands.readState(reply) else { throw .unexpected(Self.text(reply)) }
    return state
  }

  private func entries(
    after position: StreamPosition, epoch: String, floor: StreamPosition
  ) async throws(Interruption) -> [StreamEntry] {
    let replies = try await send(
      commands.read(after: position, block: isSynchronised ? Self.block : .milliseconds(1)))
    guard replies[0].text == epoch else { throw .broken }
    guard let entries = StreamEntry.all(replies[1]) else {
      throw .unexpected(Self.text(replies[1]))
    }
    guard let oldest = replies[2].elements.flatMap({ StreamEntry.list($0) }) else {
      throw .unexpected(Self.text(replies[2]))
    }
    guard let first = oldest.first else { throw .broken }
    // Others may have been trimmed before they were read. Entries before the floor may be trimmed:
    // what they cover is refused anyway.
    guard first.position <= max(position, floor) || first.content == .epoch(epoch) else {
      throw .broken
    }
    return entries
  }

  private func take(
    _ entries: [StreamEntry], _ application: Application, epoch: String
  ) async throws(Interruption) {
    guard let last = entries.last else { return }
    let before = applied.withLock { $0?.position ?? .start }
    for entry in entries {
      switch entry.content {
      case .epoch(let other): guard other == epoch else { throw .broken }
      case .purge(let scope, let machine, let number):
        let isOwn = machine == self.machine
        // In the history before it is applied: a later mark is that of a machine without these
        // entries.
        history.withLock { $0.add(scope, at: entry.position, own: isOwn ? number : nil) }
        if !isOwn, entry.position > before { await apply(scope, application) }
      case .unknown:
        history.withLock { $0.add(.everything, at: entry.position, own: nil) }
        if entry.position > before { await apply(.everything, application) }
      }
      history.withLock { $0.advance(to: entry.position) }
    }
    if last.position > before { await move(to: last.position, epoch: epoch) }
  }

  private func applyEverything(
    _ application: Application, upTo position: StreamPosition, epoch: String
  ) async {
    await apply(.everything, application)
    let before = applied.withLock { $0.flatMap { $0.epoch == epoch ? $0.position : nil } }
    await move(to: max(position, before ?? .start), epoch: epoch)
  }

  private func apply(_ scope: PurgeScope, _ application: Application) async {
    counters.applied.add()
    await enforce(scope, application)
  }

  /// Applies a purge. One that is not durable is in force: reading continues, and the file keeps
  /// the position before it.
  private func enforce(_ scope: PurgeScope, _ application: Application) async {
    do throws(ImageError) {
      try await application.apply(scope)
    } catch {
      let isNew = positionFile.withLock { file in
        defer { file.refused += 1 }
        return file.isDurable
      }
      guard isNew else { return }
      log.error(
        "purges of the fleet are in force and not durable", fields: ["reason": .string("\(error)")])
    }
  }

  /// Notes what is applied, in the file as well as far as it is durable.
  private func move(to position: StreamPosition, epoch: String) async {
    applied.withLock { applied in
      applied =
        applied?.moved(to: position, epoch: epoch)
        ?? AppliedPosition(epoch: epoch, position: position)
    }
    guard positionFile.withLock({ $0.isDurable }) else { return }
    await writePosition()
  }

  private func writePosition() async {
    guard let next = applied.withLock({ $0 }) else { return }
    let isWritten =
      (try? await threads.value { [files] in (try? files.write(next)) != nil }) == true
    let was = positionFile.withLock { file in
      defer {
        file.isWritten = isWritten
        file.retry = .now + Self.pause
      }
      return file.isWritten
    }
    guard was != isWritten else { return }
    if isWritten {
      log.info("the position in the purge stream can be written again")
    } else {
      log.error("the position in the purge stream cannot be written")
    }
  }

  /// Tries again what the disk has refused.
  private func repair(_ application: Application) async {
    guard positionFile.withLock({ $0.isDue(now: .now) }) else { return }
    let (isDurable, refused) = positionFile.withLock { ($0.isDurable, $0.refused) }
    if !isDurable {
      do throws(ImageError) {
        try await application.record()
      } catch {
        positionFile.withLock { $0.retry = .now + Self.pause }
        return
      }
      positionFile.withLock { $0.record(upTo: refused) }
      log.info("purges of the fleet are durable again")
    }
    if positionFile.withLock({ $0.isDurable }) { await writePosition() }
  }

  private func send(_ commands: [RedisCommand]) async throws(Interruption) -> [RedisReply] {
    guard let replies = try? await reader.send(commands, within: Self.block + .seconds(5)) else {
      throw .broken
    }
    return replies
  }

  private static func text(_ reply: RedisReply) -> String {
    reply.error?.description ?? "not of the expected kind"
  }
}

final class PurgeCounters: Sendable {
  /// Purges of this machine that are in the stream.
  let published = Counter(
    "purges_published", "pictor_fleet_purges_total",
    "Purges published, and applied from other machines.", ["direction": "published"])
  /// Purges of other machines, and purges of everything after a loss.
  let applied = Counter(
    "purges_applied", "pictor_fleet_purges_total", "Purges applied.", ["direction": "applied"])
}
