// WakeSignalTests: tests of setting a wake signal while it is being reset.

import Core
import Glibc
import Synchronization
import TestSupport
import Testing

@Suite(.onOwnThreads) struct WakeSignalTests {
  private static let rounds = 20_000

  /// Turns of a waiting loop before it yields its core, which the other thread may need.
  private static let turnsPerYield = 1_000

  /// Whether poll(2) would return at once.
  private func isReadable(_ signal: WakeSignal) -> Bool {
    var waiting = pollfd(fd: signal.descriptor, events: Int16(POLLIN), revents: 0)
    return poll(&waiting, 1, 0) == 1
  }

  @Test func `a signal that is reset while it is set is not readable afterwards`() throws {
    // Given a thread that sets a signal once a round
    let signal = try WakeSignal()
    let begun = Atomic<Int>(0)
    let ended = Atomic<Int>(0)
    let setter = try OwnThread(name: "test-setter", rank: .foreground) {
      for round in 1...Self.rounds {
        while begun.load(ordering: .acquiring) < round { sched_yield() }
        signal.set()
        ended.store(round, ordering: .releasing)
      }
    }
    // When this one resets it as soon as it sees it pending, as an event loop does that is awake
    var readable = 0
    for round in 1...Self.rounds {
      begun.store(round, ordering: .releasing)
      var isOver = false
      var turns = 0
      while !isOver || signal.isPending {
        // Asked for first: what is set afterwards is looked for once more.
        isOver = ended.load(ordering: .acquiring) == round
        if signal.isPending { signal.reset() }
        turns += 1
        if turns.isMultiple(of: Self.turnsPerYield) { sched_yield() }
      }
      if isReadable(signal) { readable += 1 }
    }
    setter.join()
    // Then nothing is left for poll(2) to return for
    #expect(readable == 0)
  }

  @Test func `resetting a signal that is not set has no effect`() throws {
    // Given
    let signal = try WakeSignal()
    // When
    signal.reset()
    // Then
    #expect(!signal.isPending && !isReadable(signal))
    signal.set()
    #expect(signal.isPending && isReadable(signal))
    signal.reset()
    #expect(!signal.isPending && !isReadable(signal))
  }
}
