// DiskSweeper: the thread that carries out purges which no name tells of, and writes down those that are not carried out.

import Model
import Platform
import Synchronization
import Telemetry

/// One thread of low priority beside the one that cleans, so that neither waits for the other. It alone is at the list of
/// purges on disk. Whatever it does can be stopped at the next entry, and whoever waits for it waits for one entry.
final class DiskSweeper: Sendable {
  /// What the thread can be asked for.
  enum Task: Sendable {
    /// To write down which purges are not carried out, and to begin with them.
    case writeDown
    /// To hide everything.
    case clear
    /// The same, but for what is waiting to be written and was loaded after the purge.
    case everything(Purge)
  }

  /// What became of it.
  struct Answer {
    /// Entries that were hidden.
    var count = 0
    /// Whether the index was complete then.
    var isCountKnown = true
    /// Why it is not written down; `nil` if it is.
    var failure: String? = "the disk cache is shut down"

    /// Itself.
    ///
    /// - Throws: `internal` where it is not written down; for this run it holds all the same.
    func written() throws(ImageError) -> Answer {
      guard let failure else { return self }
      throw .internal(detail: "a purge cannot be written down: \(failure)")
    }
  }

  private struct Request {
    let task: Task
    let answer: Lock<Answer>
    let continuation: CheckedContinuation<Void, Never>
  }

  private struct State {
    var requests: [Request] = []
    /// Whether the list on disk is to be written without anybody waiting for it.
    var isNoteDue = false
    var isSweepDue = false
    /// Whether the index is complete.
    var isReady = false
    /// Until when everything was cleared whose files are not gone.
    var cleared: UnixTime?
    var isEnded = false
  }

  private let monitor: Monitor<State>
  private let isStopped = Atomic<Bool>(false)
  /// Whether there is something for the thread between two entries.
  private let hasNews = Atomic<Bool>(false)
  private let store: DiskStore
  private let interval: Duration
  private let writing: FailureEpisode

  /// - Parameters:
  ///   - cleared: what an earlier run left over of a `clear`.
  ///   - interval: the time until what could not be carried out is tried again.
  init(store: DiskStore, cleared: UnixTime?, interval: Duration) {
    (self.store, self.interval) = (store, interval)
    writing = FailureEpisode("write down what was purged", log: store.log)
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

  /// Lets sweeps begin: the index is complete.
  func begin() { monitor.change { $0.isReady = true } }

  /// Has something done, and returns when it is written down or cannot be; files are removed afterwards.
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

  /// Has the list on disk brought up to date, some time soon.
  func note() {
    monitor.change { $0.isNoteDue = true }
    hasNews.store(true, ordering: .releasing)
  }

  /// Whether the files of what was cleared are not gone yet.
  var isClearing: Bool { monitor.change { $0.cleared != nil } }

  /// Ends the thread.
  func stop() {
    isStopped.store(true, ordering: .relaxed)
    monitor.change { _ in }
  }

  /// Waits until the thread has ended; tells whether it has.
  func waitForEnd(within limit: Duration) -> Bool {
    monitor.wait(for: limit) { $0.isEnded ? true : nil } ?? false
  }

  private var mustStop: Bool { isStopped.load(ordering: .relaxed) }

  private func run() {
    while !mustStop {
      let isDue = monitor.wait(for: interval) { state -> Bool? in
        let isDue = state.isReady && state.isSweepDue
        return isDue || mustStop || !state.requests.isEmpty || state.isNoteDue ? isDue : nil
      }
      attend()
      guard !mustStop else { break }
      // At the end of the interval: what could not be carried out before.
      if isDue ?? isAnythingLeft { sweep() }
      if isDue == nil { store.purges.dropOld() }
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

  /// One pass, for all purges that are open at its beginning.
  private func sweep() {
    let start = ContinuousClock.now
    let cleared = monitor.change { state in
      state.isSweepDue = false
      return state.cleared
    }
    let open = store.purges.unfinished
    guard !open.isEmpty || cleared != nil else { return }
    let result = store.sweep(open) {
      if hasNews.exchange(false, ordering: .acquiring) { attend() }
      return mustStop
    }
    guard result.isComplete else { return }
    for purge in open { store.purges.finish(purge) }
    monitor.change { state in
      // Another one came meanwhile: it has a pass of its own.
      if !state.isSweepDue { state.cleared = nil }
    }
    // The file systems that keep a journal have removed the files for good when they have this on the medium.
    _ = writeDown(isDurable: true)
    store.log.info(
      "disk cache purged",
      [
        "purges": .int(open.count), "entries": .int(result.removed),
        "bytes": .int(store.space.bytes), "duration_ms": .milliseconds(start.duration(to: .now)),
      ])
  }

  /// Does what was asked for.
  private func attend() {
    let (requests, isNoteDue) = monitor.change { state in
      defer { (state.requests, state.isNoteDue) = ([], false) }
      return (state.requests, state.isNoteDue)
    }
    guard !requests.isEmpty else {
      if isNoteDue { _ = writeDown(isDurable: false) }
      return
    }
    for request in requests {
      let isKnown = store.index.isComplete
      let count = hide(request.task)
      request.answer.withLock { ($0.count, $0.isCountKnown) = (count, isKnown) }
    }
    // One writing for all that came meanwhile.
    let failure = writeDown(isDurable: true)
    monitor.change { $0.isSweepDue = true }
    for request in requests {
      request.answer.withLock { $0.failure = failure }
      request.continuation.resume()
    }
  }

  /// Makes what a task means absent to whoever looks from now on; tells how many entries that were.
  private func hide(_ task: Task) -> Int {
    let minimum: Int
    switch task {
    case .writeDown: return 0
    case .clear:
      minimum = .max
      let now = store.clock()
      monitor.change { $0.cleared = max($0.cleared ?? now, now) }
    case .everything(let purge): minimum = purge.number
    }
    // First what waits: whoever is writing it finds that it is not wanted, or has it in the index before that is hidden.
    let unknown = store.unknownCount
    let dropped = store.pending.drop { $0.generation < minimum }
    let new = dropped.count { ticket in
      if case .present = store.index.lookUp(ticket.digest) { false } else { true }
    }
    let count = new + store.index.hideAll() + unknown
    store.counts.purged.add(count)
    return count
  }

  /// Writes the list anew; tells why it could not.
  ///
  /// - Parameter isDurable: Whether it is to outlive a power failure even where nothing in it is open.
  private func writeDown(isDurable: Bool) -> String? {
    var notes = PurgeLogRecord()
    (notes.last, notes.purges) = (store.purges.generation, store.purges.unfinished)
    notes.cleared = monitor.change { $0.cleared }
    do {
      // What is renamed over a file before it is on the medium may be found empty there afterwards, and neither is left.
      try store.writeJournal(notes, isDurable: isDurable || notes.isOpen)
      writing.succeed()
      return nil
    } catch {
      store.counts.failures.add()
      writing.fail(error.description)
      return error.description
    }
  }
}
