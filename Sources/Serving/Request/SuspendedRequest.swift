// SuspendedRequest: a suspended connection, shared by event loop, work and monitor.

import CMicrohttpd
import Core
import Synchronization

enum Outcome: Sendable {
  /// An image.
  case image(ImageDelivery)
  /// An image that is still being received.
  case streaming(StreamingDelivery)
  case fallback(FallbackDelivery)
  case json(JSONResponse)
  case failure(ImageError)
  case clientGone
}

/// A suspended request. It waits for the first of five events: result, error, deadline, client
/// disconnect, shutdown. Any thread may report one: the first decides the response and resumes the
/// connection, and later ones change nothing.
final class SuspendedRequest: Suspended, @unchecked Sendable {
  // Sound as Sendable: `connection` is only passed to MHD_resume_connection, which any thread may
  // call, once, while the connection is suspended. Everything else is immutable or behind the lock.

  let number: UInt64
  let descriptor: CInt
  let deadline: Int

  private struct Guarded {
    var outcome: Outcome?
    var hasWorkEnded = false
    /// Ends the work while it runs.
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
    let isTooLate = guarded.withLock { state in
      guard !state.hasWorkEnded else { return false }
      if state.outcome == nil { state.cancel = cancel }
      return state.outcome != nil
    }
    if isTooLate { cancel() }
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

  private func end(_ outcome: Outcome) {
    guarded.withLock { state in
      state.hasWorkEnded = true
      state.cancel = nil
    }
    // If the request was interrupted before, its stream is not read.
    if !decide(outcome), case .streaming(let delivery) = outcome { delivery.end() }
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
    // Frees the request's place before its work can observe the cancellation.
    if decide(reason) { guarded.withLock { $0.cancel.take() }?() }
  }

  /// Does nothing: the request may finish within the grace period.
  func drain() {}

  /// Releases the outcome of a request that will not be answered.
  func abandon() {
    if case .streaming(let delivery)? = outcome { delivery.end() }
  }

  /// The outcome; `nil` before the request is resumed.
  var outcome: Outcome? { guarded.withLock { $0.outcome } }

  /// Resumes the connection with its outcome. Returns `false` if it has one.
  private func decide(_ outcome: Outcome) -> Bool {
    let isFirst = guarded.withLock { state in
      let isFirst = state.outcome == nil
      if isFirst { state.outcome = outcome }
      return isFirst
    }
    guard isFirst else { return false }
    share?.end()
    monitor.resume(self, on: connection, wake: wake)
    return true
  }
}

extension RequestContext {
  /// Suspends the connection until the work is done; see `Disposition.suspend`.
  func suspend(
    _ admission: Admission, for work: @escaping RequestWork, joining: JoinedWork?
  ) -> MHD_Result {
    let monitor = handler.monitor
    let share: ClientShare?
    do throws(ImageError) {
      share = try self.share(for: admission)
    } catch {
      return refuse(error)
    }
    guard
      monitor.reserve(
        beyondLimit: admission == .always, taken: handler.provider.unattendedCount)
    else {
      share?.end()
      return refuse(.overloaded(queue: "requests", retryAfter: 1))
    }
    client.stage = .suspended
    // A suspended request has its own deadline.
    client.watch.deadline = .max
    let request = SuspendedRequest(
      number: monitor.nextNumber(), connection: connection, descriptor: client.watch.descriptor,
      deadline: Clock.coarseMilliseconds()
        + policy.configuration.requestTimeout.wholeMilliseconds,
      monitor: monitor, wake: client.loop.wake, share: share)
    client.suspendedRequest = request
    // The order matters. If resumed before it is suspended, a connection is not suspended at all
    // (libmicrohttpd 0.9.75) and stays in the monitor's table. The monitor may end the request
    // after `add`, a later request with its key after `begin`, and its work after `start`.
    MHD_suspend_connection(connection)
    let isKnown = client.isMonitored
    client.isMonitored = true
    if monitor.add(request, isKnown: isKnown) {
      handler.supersededRequests.begin(request, as: handler.operation(of: client, on: connection))
      request.start(work, joining: joining)
    } else {
      request.interrupt(.failure(.draining))
      monitor.resume(connection, wake: client.loop.wake)
    }
    return .YES
  }

  /// Returns the request's share of its client's limits; `nil` if it has none.
  ///
  /// - Throws: `rateLimited`.
  private func share(for admission: Admission) throws(ImageError) -> ClientShare? {
    guard admission == .limited else { return nil }
    return try handler.shares.begin(
      handler.named(client, on: connection), at: Clock.coarseMilliseconds())
  }

  /// Responds to a request whose connection was resumed.
  func conclude() -> MHD_Result {
    // libmicrohttpd also calls when a resumed connection has no outcome yet, and calls again later.
    guard let request = client.suspendedRequest, let outcome = request.outcome else { return .YES }
    // `.NO` closes the connection; `completed` then ends the suspended request and counts the
    // client.
    if case .clientGone = outcome { return .NO }
    client.suspendedRequest = nil
    // The stream takes the request's place as what a later request may supersede.
    if case .streaming(let delivery) = outcome { return stream(delivery, for: request) }
    handler.supersededRequests.end(request)
    switch outcome {
    case .image(let delivery): return respond(with: delivery)
    case .fallback(let fallback): return respond(with: fallback)
    case .json(let response): return respond(with: response)
    case .failure(.cancelled):
      return refuse(.internal(detail: "the work was cancelled while its client was waiting"))
    case .failure(let error): return respond(toFailure: error)
    case .streaming, .clientGone: return .NO
    }
  }
}
