// MemorySweep: takes purged variants out of memory, in a large tier after the purge is answered.

import Core
import Synchronization

/// Removes purged variants from memory. A small tier is searched before the answer; in a large one,
/// hits check the list of purges until one sweep has removed the variants of all purges that wait.
final class MemorySweep: Sendable {
  /// Up to this number of variants, a purge searches them itself.
  static let quickCount = 4_096

  private struct State {
    var isRunning = false
    /// The first purge that waits for a sweep that has not begun.
    var first: Int?
  }

  private let memory: any MemoryCache
  private let purges: any PurgeList
  private let validity: EntryValidity
  private let state = Lock(State())
  /// Variants of purges up to this number are not in memory.
  private let done = Atomic<Int>(0)

  init(memory: any MemoryCache, purges: any PurgeList, validity: EntryValidity) {
    self.memory = memory
    self.purges = purges
    self.validity = validity
  }

  /// Returns what `mayServe` compares with. Read it before the look-up: a sweep may end in between.
  var mark: Int { done.load(ordering: .acquiring) }

  /// Returns whether a variant that memory had after `mark` is not purged. Allocates nothing unless
  /// a sweep is due.
  func mayServe(_ variant: Variant, since mark: Int) -> Bool {
    !purges.covers(variant.key, generation: max(variant.info.generation, mark))
  }

  /// Removes the variants of a purge that no writer may undo any more.
  ///
  /// - Returns: their number; `nil` if they are still being searched.
  func remove(_ purge: Purge) -> Int? {
    guard memory.count > Self.quickCount, purge.scope != .everything else {
      let count = memory.removeAll { [purges] in
        purges.covers($0.key, generation: purge.number - 1)
      }
      state.withLock { state in
        if state.isRunning {
          state.first = min(state.first ?? purge.number, purge.number)
        } else {
          done.store(max(mark, purge.number), ordering: .releasing)
        }
      }
      return count
    }
    let starts = state.withLock { state in
      state.first = min(state.first ?? purge.number, purge.number)
      // A later purge may have been carried out before.
      done.store(min(mark, purge.number - 1), ordering: .releasing)
      defer { state.isRunning = true }
      return !state.isRunning
    }
    if starts { Task(priority: .utility) { await run() } }
    return nil
  }

  /// Sweeps until no purge waits, for a tenth of the time at most.
  private func run() async {
    repeat {
      let start = ContinuousClock.now
      sweep()
      try? await Task.sleep(for: min(start.duration(to: .now) * 10, .seconds(2)))
    } while state.withLock { state in
      state.isRunning = state.first != nil
      return state.isRunning
    }
  }

  /// Removes what is purged.
  private func sweep() {
    let last = state.withLock { state in
      state.first = nil
      return purges.generation
    }
    // Their purges may not have got this far.
    validity.waitForWriters()
    let mark = mark
    _ = memory.removeAll { [purges] in
      purges.covers($0.key, generation: max($0.info.generation, mark))
    }
    state.withLock { state in
      done.store(state.first.map { min(last, $0 - 1) } ?? last, ordering: .releasing)
    }
  }
}
