// DiskSweeper: carries out the purges that need a full pass, and keeps the purge journal.

import Core
import Glibc
import Synchronization

/// A low-priority thread for purges, separate from `DiskMaintenance` so that neither waits for the
/// other. Only this thread writes the purge journal. Between two entries of a pass it serves new
/// requests and can stop.
final class DiskSweeper: Sendable {
  /// A request to the thread.
  enum Task: Sendable {
    /// Write a purge to the journal, or those that could not be written, and start a pass.
    case writeDown(Purge?)
    /// Turn all entries into tombstones.
    case clear
    /// Turn all entries into tombstones, except pending writes loaded after the purge.
    case everything(Purge)
  }

  /// The result of a request.
  struct Answer {
    /// The number of entries that became tombstones.
    var count = 0
    /// Whether the index was complete at that time.
    var isCountKnown = true
    /// Why the journal could not be written; `nil` on success.
    var failure: String? = "the disk cache is shut down"

    /// Returns the answer itself.
    ///
    /// - Throws: `internal` if the journal was not written. The purge is still in force until the
    ///   process ends.
    func written() throws(ImageError) -> Answer {
      guard let failure else { return self }
      throw .internal(detail: "a purge cannot be recorded: \(failure)")
    }
  }

  private struct Request {
    let task: Task
    let answer: Lock<Answer>
    let continuation: CheckedContinuation<Void, Never>
  }

  private struct State {
    var requests: [Request] = []
    /// Whether the journal must be written although no request waits for it.
    var isNoteDue = false
    var isSweepDue = false
    /// Whether the index is complete.
    var isReady = false
    /// The time of the last clear whose files are not all removed.
    var cleared: UnixTime?
    /// How often all entries were hidden.
    var hides = 0
    var isEnded = false
  }

  private let monitor: Monitor<State>
  private let isStopped = Atomic<Bool>(false)
  /// Whether the thread has requests to serve between two entries.
  private let hasNews = Atomic<Bool>(false)
  private let store: DiskStore
  private let interval: Duration
  private let writing: FailureEpisode

  /// - Parameters:
  ///   - cleared: the time of an unfinished `clear` of an earlier run.
  ///   - interval: the time until failed work is tried again.
  init(store: DiskStore, cleared: UnixTime?, interval: Duration) {
    self.store = store
    self.interval = interval
    writing = FailureEpisode("record purges", log: store.log)
    var state = State()
    state.cleared = cleared
    state.isSweepDue = cleared != nil || store.purges.unfinishedCount > 0
    monitor = Monitor(state)
  }

  /// Starts the thread.
  func start() throws(DiskTierError) {
    do throws(SystemError) {
      try OwnThread.start(name: "pictor-sweep", rank: .background) { self.run() }
    } catch {
      throw .noThread(reason: error.description)
    }
  }

  /// Allows sweeps to start, because the index is complete.
  func begin() { monitor.change { $0.isReady = true } }

  /// Performs a task. Returns when the journal is written or has failed; files are removed later.
  func perform(_ task: Task) async -> Answer {
    let answer = Lock(Answer())
    await withCheckedContinuation { continuation in
      let isEnded = monitor.change { state in
        guard !state.isEnded else { return true }
        state.requests.append(Request(task: task, answer: answer, continuation: continuation))
        return false
      }
      hasNews.store(true, ordering: .releasing)
      if isEnded { continuation.resume() }
    }
    return answer.withLock { $0 }
  }

  /// Requests that the journal is updated soon.
  func note() {
    monitor.change { $0.isNoteDue = true }
    hasNews.store(true, ordering: .releasing)
  }

  /// Whether files of a `clear` are still to be removed.
  var isClearing: Bool { monitor.change { $0.cleared != nil } }

  /// Tells the thread to end.
  func stop() {
    isStopped.store(true, ordering: .relaxed)
    monitor.change { _ in }
  }

  /// Waits until the thread has ended. Returns whether it has.
  func waitForEnd(within limit: Duration) -> Bool {
    monitor.wait(for: limit) { $0.isEnded ? true : nil } ?? false
  }

  private var mustStop: Bool { isStopped.load(ordering: .relaxed) }

  private func run() {
    // A pass takes a tenth of the time at most, and serves all purges that came during the pause.
    var rested = ContinuousClock.now
    while !mustStop {
      let pause = ContinuousClock.now.duration(to: rested)
      let isRested = pause <= .zero
      let isDue = monitor.wait(for: isRested ? interval : min(pause, interval)) { state -> Bool? in
        let isDue = state.isReady && state.isSweepDue && isRested
        return isDue || mustStop || !state.requests.isEmpty || state.isNoteDue ? isDue : nil
      }
      attend()
      guard !mustStop else { break }
      // After the interval, retry what failed before.
      if isDue ?? (isRested && isAnythingLeft) {
        let start = ContinuousClock.now
        sweep()
        rested = .now + min(start.duration(to: .now) * 10, .seconds(2))
      }
      if isDue == nil, isRested { store.purges.dropOld() }
    }
    attend()
    let left = monitor.change { state in
      state.isEnded = true
      defer { state.requests = [] }
      return state.requests
    }
    for request in left { request.continuation.resume() }
  }

  private var isAnythingLeft: Bool {
    monitor.change { $0.isReady && ($0.cleared != nil || store.purges.unfinishedCount > 0) }
  }

  /// Runs one pass for all purges that are unfinished at its start.
  private func sweep() {
    let start = ContinuousClock.now
    let (cleared, hides) = monitor.change { state in
      state.isSweepDue = false
      return (state.cleared, state.hides)
    }
    let open = store.purges.unfinished
    guard !open.isEmpty || cleared != nil else {
      // A pass may carry out a purge before it is written down.
      _ = writeDown()
      return
    }
    let result = store.sweep(open) {
      if hasNews.exchange(false, ordering: .acquiring) { attend() }
      return mustStop
    }
    guard result.isComplete else { return }
    for purge in open { store.purges.finish(purge) }
    let isLast = monitor.change { state in
      // What arrived meanwhile needs a pass of its own.
      guard state.hides == hides else { return false }
      state.cleared = nil
      return true
    }
    if isLast { store.index.hideFound(until: nil) }
    // On a journalling file system, this sync also makes the removals durable.
    _ = writeDown()
    store.log.info(
      "disk cache purged",
      fields: [
        "purges": .int(open.count), "entries": .int(result.removed),
        "bytes": .int(store.space.bytes), "duration_ms": .milliseconds(start.duration(to: .now)),
      ])
  }

  /// Serves the waiting requests.
  private func attend() {
    let (requests, isNoteDue) = monitor.change { state in
      defer {
        state.requests = []
        state.isNoteDue = false
      }
      return (state.requests, state.isNoteDue)
    }
    guard !requests.isEmpty || isNoteDue else { return }
    var news = PurgeJournal()
    if isNoteDue { news.last = store.purges.generation }
    for request in requests {
      let isKnown = store.index.isComplete
      let count = hide(request.task, noting: &news)
      request.answer.withLock {
        $0.count = count
        $0.isCountKnown = isKnown
      }
    }
    // One write of the journal serves all requests.
    let failure = writeDown(news, isDurable: !requests.isEmpty)
    guard !requests.isEmpty else { return }
    monitor.change { $0.isSweepDue = true }
    for request in requests {
      request.answer.withLock { $0.failure = failure }
      request.continuation.resume()
    }
  }

  /// Makes the entries of a task absent for look-ups. Returns the number of entries.
  ///
  /// - Parameter news: gets what the task adds to the journal.
  private func hide(_ task: Task, noting news: inout PurgeJournal) -> Int {
    let minimum: Int
    switch task {
    case .writeDown(let purge):
      if let purge { news.purges.append(purge) }
      return 0
    case .clear:
      minimum = .max
      let now = store.clock()
      news.cleared = monitor.change { state in
        let time = max(state.cleared ?? now, now)
        state.cleared = time
        return time
      }
    case .everything(let purge):
      minimum = purge.number
      news.purges.append(purge)
    }
    monitor.change { $0.hides += 1 }
    // Pending writes first: a write in progress then either finds its ticket dropped, or is in the
    // index before the tombstones are set.
    let unknown = store.unknownCount
    let dropped = store.pending.drop { $0.generation < minimum }
    let new = dropped.count { ticket in
      if case .present = store.index.lookUp(ticket.digest) { false } else { true }
    }
    let count = new + store.index.hideAll() + unknown
    store.counts.purged.add(count)
    return count
  }

  /// Writes the journal. Returns the error text, or `nil` on success.
  ///
  /// - Parameters:
  ///   - news: what the journal lacks; `nil`: all is written, without what is finished.
  ///   - isDurable: whether `news` must survive a power failure.
  private func writeDown(_ news: PurgeJournal? = nil, isDurable: Bool = true) -> String? {
    if let news, store.appendToJournal(news, isDurable: isDurable) { return nil }
    var journal = PurgeJournal()
    journal.last = store.purges.generation
    journal.purges = store.purges.unfinished
    journal.cleared = monitor.change { $0.cleared }
    do {
      try store.writeJournal(journal)
      writing.succeed()
      return nil
    } catch {
      store.journal.withLock { $0.length = nil }
      store.counts.failures.add()
      writing.fail(error.description)
      return error.description
    }
  }
}

extension DiskStore {
  /// The result of a pass.
  struct SweepResult {
    var removed = 0
    /// Whether every entry was checked and every purged file is gone.
    var isComplete = true
  }

  /// Removes the files of tombstones and of purged entries. The keys are inside the files, so each
  /// file that `open` may cover is opened. The index must be complete.
  ///
  /// No lock is held while a file is read. A file that is renamed into a shard after the shard was
  /// copied needs no check. `place` has checked it under the `folders` lock, when the list of
  /// purges already held `open`.
  ///
  /// - Parameter isStopped: Called before each entry, without a lock.
  func sweep(_ open: [Purge], until isStopped: () -> Bool) -> SweepResult {
    var result = SweepResult()
    let candidates = SweepFilter(open)
    for shard in index.shards {
      let records = shard.folders.withLock { _ in shard.table.withLock { $0.records } }
      for (digest, record) in records {
        guard !isStopped() else {
          result.isComplete = false
          return result
        }
        let isDone: Bool
        if record.isTombstone {
          isDone =
            removeFile(digest, kind: record.kind) { $0?.isTombstone == true }
            || !isTombstone(digest)
        } else {
          isDone =
            !candidates.mayCover(digest) || removeIfPurged(digest, kind: record.kind, into: &result)
        }
        if !isDone { result.isComplete = false }
      }
    }
    if isScanDue.load(ordering: .relaxed) { result.isComplete = false }
    return result
  }

  /// Returns whether an entry is a tombstone: its removal failed, but look-ups miss it.
  private func isTombstone(_ digest: EntryDigest) -> Bool {
    index.shard(of: digest).table.withLock { $0.records[digest]?.isTombstone == true }
  }

  /// The number of entries on disk that the index does not know yet, counted by file names.
  var unknownCount: Int {
    var count = 0
    for (number, shard) in index.shards.enumerated() {
      let known = shard.table.withLock { $0.isComplete ? nil : $0.records.count }
      guard let known else { continue }
      let first = number * DiskIndex.foldersPerShard
      let all = (first..<first + DiskIndex.foldersPerShard).reduce(0) { count, number in
        EntryKind.allCases.reduce(count) { count, kind in
          let names = DiskFolder.names(in: folder.folder(kind, number: number))
          return count + names.count { EntryDigest(hexadecimal: $0) != nil }
        }
      }
      count += max(all - known, 0)
    }
    return count
  }

  /// Checks one file and removes it if it is purged. Returns `false` if the check or the removal
  /// failed.
  private func removeIfPurged(
    _ digest: EntryDigest, kind: EntryKind, into result: inout SweepResult
  ) -> Bool {
    switch EntryPrefix.read(folder.file(kind, of: digest)) {
    case .found(let entry):
      guard purges.covers(entry.key, generation: entry.generation) else { return true }
      guard removeFile(digest, kind: kind, inode: entry.inode) else { return !isTombstone(digest) }
      result.removed += 1
      counts.purged.add()
    case .damaged(let inode):
      counts.damaged.add()
      log.warning("damaged cache entry removed", fields: ["file": .string(digest.hexadecimal)])
      guard removeFile(digest, kind: kind, inode: inode) else { return !isTombstone(digest) }
    case .absent, .purged: break
    case .failed(let error):
      fail(reading, with: error)
      // EIO is a permanent loss, so the entry is removed. Other errors may be temporary.
      guard error.code == EIO else { return false }
      removeFile(digest, kind: kind)
      return !isTombstone(digest)
    }
    return true
  }
}

/// The entries that a set of purges may cover, told by their digests alone.
private struct SweepFilter {
  private var urlDigests: Set<UInt64> = []
  private var matchesAll = false

  init(_ purges: [Purge]) {
    for purge in purges {
      if case .url(let url) = purge.scope {
        urlDigests.insert(EntryDigest(of: CacheKey(source: url)).high)
      } else {
        matchesAll = true
      }
    }
  }

  func mayCover(_ digest: EntryDigest) -> Bool { matchesAll || urlDigests.contains(digest.high) }
}
