// PurgeStream: publishes this machine's purges, and applies those of the others.

import Model
import Platform
import Synchronization
import Telemetry

/// A machine's end of the purge stream.
final class PurgeStream: Sendable {
  /// Applies a purge to this machine's tiers.
  typealias Application = @Sendable (PurgeScope) async throws(ImageError) -> Void

  /// A reply that the stream does not give, or an epoch that has ended.
  private enum Interruption: Error {
    case redis(RedisFailure)
    case unexpected(String)
    case notApplied(ImageError)
    case notWritten
    case otherEpoch
  }

  /// How long a read waits for entries.
  private static let block = Duration.seconds(1)

  let counters = PurgeCounters()
  private let client: RedisClient
  private let commands: PurgeCommands
  private let files: FleetFiles
  private let threads = BlockingThreads(name: "pictor-fleet", threads: 1)
  private let retryInterval: Duration
  private let log: Log
  /// Tells this machine's entries from those of others. A new one at each start.
  private let machine = String(UInt64.random(in: 0...(.max)), radix: 36)
  private let outbox: Lock<PurgeOutbox>
  private let applied: Lock<AppliedPosition?>
  private let history: Lock<PurgeHistory>
  /// The number of this machine's last purge.
  private let lastNumber: Atomic<Int>
  /// Whether this machine has applied all that the stream had a moment ago.
  private let isCurrent = Atomic<Bool>(false)
  /// Whether the stream was found gone, so the reader has to begin a new one.
  private let isGone = Atomic<Bool>(false)
  private let lastRead = Lock<ContinuousClock.Instant?>(nil)

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
    for (scope, number) in waiting.oldest(.max) { history.addPending(scope, number: number) }
    self.history = Lock(history)
    lastNumber = Atomic(waiting.scopes.count)
    outbox = Lock(waiting)
    applied = Lock(files.readPosition())
  }

  /// Whether this machine has applied all purges that the stream had at the last read.
  var isSynchronised: Bool { isCurrent.load(ordering: .acquiring) }

  /// The number of purges that wait for Redis.
  var waiting: Int { outbox.withLock { $0.scopes.count } }

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
  func allows(_ key: CacheKey, mark: SharedMark, filter: CacheKeyFilter) -> Bool {
    isSynchronised && history.withLock { $0.allows(key, mark: mark, filter: filter) }
  }

  // MARK: Publishing

  /// Notes a purge before it is applied here. Returns its number.
  func begin(_ scope: PurgeScope) -> Int {
    let number = lastNumber.wrappingAdd(1, ordering: .relaxed).newValue
    history.withLock { $0.addPending(scope, number: number) }
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

  /// Delivers purges that waited. Returns when all are delivered, or when one could not be.
  private func deliver() async {
    while true {
      let batch = outbox.withLock { $0.oldest(100) }
      guard !batch.isEmpty,
        let replies = try? await client.send(
          batch.map { commands.add($0.scope, number: $0.number, from: machine) },
          within: .seconds(2))
      else { return }
      let delivered = zip(batch, replies).filter { isAdded($1) }.map(\.0)
      counters.published.add(delivered.count)
      await keep { $0.remove(delivered) }
      if delivered.count < batch.count { return }
    }
  }

  /// Changes the journal, in memory and on disk.
  private func keep(_ change: @escaping @Sendable (inout PurgeOutbox) -> Void) async {
    outbox.withLock { change(&$0) }
    let isWritten = try? await threads.value { [outbox, files] in
      // One thread writes, so a later file has later purges.
      (try? files.write(outbox.withLock { $0.scopes })) != nil
    }
    if isWritten != true {
      log.error("purges that wait for Redis cannot be written, and do not outlive this process")
    }
  }

  // MARK: Reading

  /// Follows the stream until the task is cancelled.
  func run(apply: @escaping Application) async {
    let (ready, signal) = AsyncStream.makeStream(
      of: Void.self, bufferingPolicy: .bufferingNewest(1))
    client.onReady(.stream) { signal.yield() }
    // The greeting may have been before.
    signal.yield()
    for await _ in ready {
      while client.isReady(.stream), !Task.isCancelled {
        do throws(Interruption) {
          try await follow(apply)
        } catch {
          isCurrent.store(false, ordering: .releasing)
          switch error {
          // A pause for these, too: a server that names another epoch each time must not keep the machine busy.
          case .otherEpoch, .redis: break
          case .unexpected(let reply):
            log.warning("the purge stream cannot be read", fields: ["reply": .string(reply)])
          case .notApplied(let error):
            log.error("a purge of the fleet failed", fields: ["reason": .string("\(error)")])
          case .notWritten:
            log.error("the position in the purge stream cannot be written")
          }
        }
        try? await Task.sleep(for: retryInterval)
      }
    }
    client.onReady(.stream, nil)
  }

  private func follow(_ apply: Application) async throws(Interruption) {
    let epoch = String(UInt64.random(in: 0...(.max)), radix: 36)
    var state = try await state(epoch: epoch, lost: "")
    let before = applied.withLock { $0 }
    var beginning = state.beginning(for: before)
    if beginning == .renewEpoch, let before {
      log.warning("Redis has lost purges; a new epoch begins")
      state = try await self.state(epoch: epoch, lost: before.epoch)
      beginning = state.beginning(for: before)
    }
    switch beginning {
    case .read(let position):
      try await move(to: position, epoch: state.epoch, onlyIf: before == nil)
    case .purgeEverything(let position):
      log.warning("purges of the fleet may have been missed; everything is purged")
      try await applyEverything(apply, upTo: position, epoch: state.epoch)
    case .renewEpoch: throw .unexpected("an epoch that does not change")
    }
    history.withLock { history in
      if history.epoch != state.epoch {
        history.begin(epoch: state.epoch, floor: state.isWhole ? .start : state.oldest)
      }
    }
    // The history of the whole stream, and what was missed, without waiting.
    while !Task.isCancelled {
      let entries = try await entries(
        after: history.withLock { $0.position }, epoch: state.epoch)
      let missed = entries.filter { $0.position > applied.withLock { $0?.position ?? .start } }
      // Many purges are one of everything.
      let isMany = !isSynchronised && missed.count >= PurgeCommands.many
      if isMany { try await applyEverything(apply, upTo: state.newest, epoch: state.epoch) }
      try await take(entries, apply, epoch: state.epoch)
      if entries.count < PurgeCommands.batch {
        isCurrent.store(true, ordering: .releasing)
        lastRead.withLock { $0 = .now }
      }
      if waiting > 0 { await deliver() }
      if isGone.exchange(false, ordering: .acquiring) { throw .otherEpoch }
    }
  }

  private func state(epoch: String, lost: String) async throws(Interruption) -> StreamState {
    let reply = try await send([commands.state(epoch: epoch, lost: lost)])[0]
    guard let state = commands.readState(reply) else { throw .unexpected(Self.text(reply)) }
    return state
  }

  private func entries(
    after position: StreamPosition, epoch: String
  ) async throws(Interruption) -> [StreamEntry] {
    let replies = try await send(
      commands.read(after: position, block: isSynchronised ? Self.block : .milliseconds(1)))
    guard replies[0].text == epoch else { throw .otherEpoch }
    guard let entries = StreamEntry.all(replies[1]) else {
      throw .unexpected(Self.text(replies[1]))
    }
    return entries
  }

  private func take(
    _ entries: [StreamEntry], _ apply: Application, epoch: String
  ) async throws(Interruption) {
    guard let last = entries.last else { return }
    let before = applied.withLock { $0?.position ?? .start }
    for entry in entries {
      let scope: PurgeScope
      var own: Int?
      switch entry.content {
      case .epoch(let other):
        guard other == epoch else { throw .otherEpoch }
        continue
      case .purge(let purged, let machine, let number):
        scope = purged
        own = machine == self.machine ? number : nil
      case .unknown: scope = .everything
      }
      // Before it is applied, and both before the position: a later mark is that of a machine without these entries.
      history.withLock { $0.add(scope, at: entry.position, own: own) }
      if own == nil, entry.position > before { try await applyOne(scope, apply) }
    }
    history.withLock { $0.skip(to: last.position) }
    if last.position > before { try await move(to: last.position, epoch: epoch) }
  }

  private func applyEverything(
    _ apply: Application, upTo position: StreamPosition, epoch: String
  ) async throws(Interruption) {
    try await applyOne(.everything, apply)
    try await move(to: position, epoch: epoch)
  }

  private func applyOne(_ scope: PurgeScope, _ apply: Application) async throws(Interruption) {
    do throws(ImageError) {
      try await apply(scope)
    } catch {
      throw .notApplied(error)
    }
    counters.applied.add()
  }

  /// Notes what is applied, in the file as well.
  private func move(
    to position: StreamPosition, epoch: String, onlyIf isNeeded: Bool = true
  ) async throws(Interruption) {
    guard isNeeded else { return }
    let next = AppliedPosition(epoch: epoch, position: position)
    let isWritten = try? await threads.value { [files] in (try? files.write(next)) != nil }
    guard isWritten == true else { throw .notWritten }
    applied.withLock { $0 = next }
  }

  private func send(_ commands: [RedisCommand]) async throws(Interruption) -> [RedisReply] {
    do throws(RedisFailure) {
      return try await client.send(commands, on: .stream, within: Self.block + .seconds(5))
    } catch {
      throw .redis(error)
    }
  }

  private static func text(_ reply: RedisReply) -> String {
    reply.error?.description ?? "not of the expected kind"
  }
}

/// Counts since the start.
final class PurgeCounters: Sendable {
  /// Purges of this machine that are in the stream.
  let published = Counter()
  /// Purges of other machines that were applied, and purges of everything after a loss.
  let applied = Counter()
}
