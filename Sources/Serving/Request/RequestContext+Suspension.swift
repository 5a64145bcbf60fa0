// RequestContext+Suspension: suspends a connection for work, and responds when it is resumed.

import CMicrohttpd
import Core

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
      monitor.resumeRefused(connection, wake: client.loop.wake)
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
