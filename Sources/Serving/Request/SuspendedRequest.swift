// SuspendedRequest: a suspended request, shared by event loop, work and monitor.

import CMicrohttpd
import Model
import Platform
import Synchronization

/// A suspended request. Any thread may end it; the first to do so resumes the connection.
final class SuspendedRequest: Suspended, @unchecked Sendable {
  // Sound as Sendable: `connection` is only passed to MHD_resume_connection, which any thread may
  // call, once, while the connection is suspended. Everything else is immutable or behind the lock.

  let number: UInt64
  let descriptor: CInt
  let deadline: Int

  private struct Guarded {
    var state = SuspendedRequestState()
    /// Ends the work.
    var cancel: (@Sendable () -> Void)?
  }

  private let connection: OpaquePointer
  private let monitor: ConnectionMonitor
  private let wake: WakeSignal
  private let share: ClientShare?
  private let guarded = Lock(Guarded())

  /// Creates a request on a connection that is about to be suspended; `wake` wakes the connection's
  /// thread. `share` is ended when the request is resumed.
  init(
    number: UInt64, connection: OpaquePointer, descriptor: CInt, deadline: Int,
    monitor: ConnectionMonitor, wake: WakeSignal, share: ClientShare?
  ) {
    self.number = number
    self.connection = connection
    self.descriptor = descriptor
    self.deadline = deadline
    self.monitor = monitor
    self.wake = wake
    self.share = share
  }

  /// Joins other requests' work, or else starts the request's own. Its result is the outcome unless
  /// the request is interrupted first.
  func start(_ work: @escaping RequestWork, joining: JoinedWork?) {
    let cancel = joining?(account.client) { self.end($0) } ?? begin(work)
    perform(
      guarded.withLock {
        $0.cancel = cancel
        return $0.state.workStarted()
      })
  }

  /// Starts a task that does the work. Returns how to cancel it.
  private func begin(_ work: @escaping RequestWork) -> @Sendable () -> Void {
    let task = Task.detached {
      TaskThreads.takeRank()
      let outcome: Outcome
      do throws(ImageError) {
        outcome = try await self.charged(work)
      } catch {
        outcome = .failure(error)
      }
      self.end(outcome)
    }
    return { task.cancel() }
  }

  /// Ends the request with the outcome of its work.
  private func end(_ outcome: Outcome) {
    let actions = guarded.withLock { $0.state.workEnded(outcome) }
    perform(actions)
    // The request was interrupted before, so its stream is not read.
    if case .streaming(let delivery) = outcome, !actions.contains(.resume) { delivery.end() }
  }

  /// What the work is charged to.
  private var account: any ImagingAccount { share ?? UnlimitedAccount() }

  /// Does the work as that of the client: imaging time and downloads count as the client's.
  private func charged(_ work: @escaping RequestWork) async throws(ImageError) -> Outcome {
    // `withValue` does not keep the type of an error.
    return try await ImagingAccounts.$current.withValue(account) {
      () async -> Result<Outcome, ImageError> in
      do throws(ImageError) {
        return .success(try await work())
      } catch {
        return .failure(error)
      }
    }.get()
  }

  /// Ends the request before its work is done.
  func interrupt(_ reason: Outcome) {
    perform(guarded.withLock { $0.state.interrupted(reason) })
  }

  /// Does nothing: the request may finish within the grace period.
  func drain() {}

  /// Releases the outcome of a request that will not be answered.
  func abandon() {
    if case .streaming(let delivery)? = outcome { delivery.end() }
  }

  /// The outcome; `nil` before the request is resumed.
  var outcome: Outcome? { guarded.withLock { $0.state.decided() } }

  private func perform(_ actions: SuspendedRequestState.Actions) {
    // Frees the request's place before its work can observe the cancellation.
    if actions.contains(.resume) {
      share?.end()
      monitor.resume(self, on: connection, wake: wake)
    }
    if actions.contains(.cancelWork) {
      guarded.withLock { $0.cancel }?()
    }
  }
}
