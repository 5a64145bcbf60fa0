// Exchange: a suspended request, between the worker that suspended it, the task that works for it and the watcher.

import CMicrohttpd
import Model
import Platform
import Synchronization

/// A suspended request. Any thread may end it; the first to do so resumes the connection.
final class SuspendedRequest: Suspended, @unchecked Sendable {
  // Sound as Sendable: `connection` is only given to MHD_resume_connection, which any thread may call, once, while the
  // connection is suspended; everything else is immutable or behind the mutex.

  let number: UInt64
  let descriptor: CInt
  let deadline: Int

  private struct Guarded {
    var state = SuspendedRequestState()
    var task: Task<Void, Never>?
  }

  private let connection: OpaquePointer
  private let watcher: ConnectionMonitor
  private let wake: WakeSignal
  private let guarded = Lock(Guarded())

  /// A request on a connection that was suspended just now; `wake` wakes the thread it belongs to.
  init(
    number: UInt64, connection: OpaquePointer, descriptor: CInt, deadline: Int,
    watcher: ConnectionMonitor,
    wake: WakeSignal
  ) {
    self.number = number
    self.connection = connection
    self.descriptor = descriptor
    self.deadline = deadline
    self.watcher = watcher
    self.wake = wake
  }

  /// Starts the work, whose result is the outcome unless something comes before it.
  func start(_ work: @escaping @Sendable () async throws(ImageError) -> Outcome) {
    let task = Task.detached {
      TaskThreads.takeRank()
      let outcome: Outcome
      do throws(ImageError) {
        outcome = try await work()
      } catch {
        outcome = .failure(error)
      }
      let actions = self.guarded.withLock { $0.state.workEnded(outcome) }
      self.perform(actions)
      // Too late: nobody will read it.
      if case .coming(let coming) = outcome, !actions.contains(.resume) { coming.end() }
    }
    perform(
      guarded.withLock {
        $0.task = task
        return $0.state.workStarted()
      })
  }

  /// Ends the request before its work is done.
  func interrupt(_ reason: Outcome) {
    perform(guarded.withLock { $0.state.interrupted(reason) })
  }

  /// It has its grace time.
  func drain() {}

  /// Nobody will answer it: gives up what its outcome holds.
  func abandon() {
    if case .coming(let coming)? = outcome { coming.end() }
  }

  /// How it ended; `nil` only before it was resumed.
  var outcome: Outcome? { guarded.withLock { $0.state.decided() } }

  private func perform(_ actions: SuspendedRequestState.Actions) {
    if actions.contains(.cancelWork) {
      guarded.withLock { $0.task }?.cancel()
    }
    if actions.contains(.resume) {
      watcher.resume(self, connection, wake: wake)
    }
  }
}
