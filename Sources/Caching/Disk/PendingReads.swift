// PendingReads: tasks that wait for the disk, each with a deadline.

import Platform

/// The reads in progress. A read that misses its deadline is a miss; its late result is dropped.
final class PendingReads: Sendable {
  /// One read. The first call of `finish` counts.
  final class Read: Sendable {
    private struct State {
      var continuation: CheckedContinuation<Void, Never>?
      var entry: DiskEntry?
    }

    fileprivate let deadline: ContinuousClock.Instant
    private let state: Lock<State>

    fileprivate init(
      _ continuation: CheckedContinuation<Void, Never>, deadline: ContinuousClock.Instant
    ) {
      state = Lock(State(continuation: continuation))
      self.deadline = deadline
    }

    /// Delivers the result.
    func finish(_ entry: DiskEntry?) {
      let continuation = state.withLock { state -> CheckedContinuation<Void, Never>? in
        guard let continuation = state.continuation else { return nil }
        state = State(entry: entry)
        return continuation
      }
      continuation?.resume()
    }

    /// The result. It is passed under the lock because the thread sanitizer does not understand
    /// continuations.
    fileprivate var entry: DiskEntry? { state.withLock { $0.entry } }
  }

  private struct State {
    var reads: [Int: Read] = [:]
    var next = 0
    var isWatched = false
    var isEnded = false
  }

  private let timeout: Duration
  private let state = Lock(State())

  init(timeout: Duration) { self.timeout = timeout }

  /// Calls `start` with a new read and waits until the read is finished.
  func wait(_ start: (Read) -> Void) async -> DiskEntry? {
    var waiting: (number: Int, read: Read)?
    await withCheckedContinuation { continuation in
      let read = Read(continuation, deadline: ContinuousClock.now + timeout)
      let (added, mustWatch) = state.withLock { state -> (Int?, Bool) in
        guard !state.isEnded else { return (nil, false) }
        state.next += 1
        state.reads[state.next] = read
        defer { state.isWatched = true }
        return (state.next, !state.isWatched)
      }
      guard let added else { return read.finish(nil) }
      waiting = (added, read)
      if mustWatch { watch() }
      start(read)
    }
    guard let waiting else { return nil }
    state.withLock { _ = $0.reads.removeValue(forKey: waiting.number) }
    return waiting.read.entry
  }

  /// Finishes all reads as misses, and every later read at once.
  func end() {
    let left = state.withLock { state in
      state.isEnded = true
      defer { state.reads = [:] }
      return state.reads.values
    }
    for read in left { read.finish(nil) }
  }

  /// Finishes reads past their deadline while there are any. Runs in its own task because a stuck
  /// disk may block all disk threads.
  private func watch() {
    let interval = min(timeout, .seconds(1))
    Task { [weak self] in
      while true {
        try? await Task.sleep(for: interval)
        guard let self, self.finishLate() else { return }
      }
    }
  }

  private func finishLate() -> Bool {
    let now = ContinuousClock.now
    let (late, goesOn) = state.withLock { state -> ([Read], Bool) in
      state.isWatched = !state.reads.isEmpty
      return (state.reads.values.filter { $0.deadline <= now }, state.isWatched)
    }
    for read in late { read.finish(nil) }
    return goesOn
  }
}
