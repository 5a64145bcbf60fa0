// PendingReads: tasks that wait for the disk, none of them for ever.

import Platform

/// Look-ups under way. A disk that does not answer in time is a miss; what it answers later is dropped.
final class PendingReads: Sendable {
  /// One look-up: finished once, by whoever comes first.
  final class Read: Sendable {
    private struct State {
      var continuation: CheckedContinuation<Void, Never>?
      var entry: DiskEntry?
    }

    fileprivate let deadline: ContinuousClock.Instant
    private let state: Lock<State>

    fileprivate init(
      _ continuation: CheckedContinuation<Void, Never>, _ deadline: ContinuousClock.Instant
    ) {
      state = Lock(State(continuation: continuation))
      self.deadline = deadline
    }

    /// Hands over what was found.
    func finish(_ entry: DiskEntry?) {
      let continuation = state.withLock { state -> CheckedContinuation<Void, Never>? in
        guard let continuation = state.continuation else { return nil }
        state = State(entry: entry)
        return continuation
      }
      continuation?.resume()
    }

    /// What was handed over. It comes by way of the lock, since the thread sanitizer does not see into continuations.
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

  /// Calls `start` with a look-up and waits until it is finished, by whomever.
  func wait(_ start: (Read) -> Void) async -> DiskEntry? {
    var waiting: (number: Int, read: Read)?
    await withCheckedContinuation { continuation in
      let read = Read(continuation, ContinuousClock.now + timeout)
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

  /// Finishes all look-ups, and each later one at once.
  func end() {
    let left = state.withLock { state in
      state.isEnded = true
      defer { state.reads = [:] }
      return state.reads.values
    }
    for read in left { read.finish(nil) }
  }

  /// Looks for late ones for as long as there are any look-ups: a task of its own, so that a stuck disk cannot hold up
  /// the watch too.
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
