// SuspendedRequestState: the states of a suspended request, without sockets, threads or clocks.

import Model

/// The outcome of a suspended request.
enum Outcome: Sendable {
  /// An image.
  case image(ImageDelivery)
  /// An image that is still being received.
  case streaming(StreamingDelivery)
  /// A fallback image.
  case fallback(FallbackDelivery)
  /// The JSON response of an endpoint.
  case json(JSONResponse)
  /// An error.
  case failure(ImageError)
  /// The client disconnected.
  case clientGone
}

/// The states of a request that waits for the first of five events: result, error, deadline, client
/// disconnect, shutdown. The first event decides the response; later events change nothing.
struct SuspendedRequestState: Sendable {
  /// What the caller must do after reporting an event.
  struct Actions: Hashable, OptionSet, Sendable {
    let rawValue: Int
    /// Cancel the work, because its result is not needed.
    static let cancelWork = Actions(rawValue: 1)
    /// Resume the connection, because the outcome is known. Returned exactly once.
    static let resume = Actions(rawValue: 2)
  }

  private enum Work { case notStarted, running, done }

  private var outcome: Outcome?
  private var work = Work.notStarted

  /// Records that the work can be cancelled. The request may be decided already, and the work may
  /// have ended.
  mutating func workStarted() -> Actions {
    guard work == .notStarted else { return [] }
    work = .running
    return outcome == nil ? [] : .cancelWork
  }

  /// Records the end of the work.
  mutating func workEnded(_ result: Outcome) -> Actions {
    work = .done
    return decide(result)
  }

  /// Ends the request before its work.
  mutating func interrupted(_ reason: Outcome) -> Actions {
    var actions = decide(reason)
    if actions.contains(.resume), work == .running { actions.insert(.cancelWork) }
    return actions
  }

  /// Returns the outcome, for the response after the connection was resumed.
  func decided() -> Outcome? { outcome }

  private mutating func decide(_ result: Outcome) -> Actions {
    guard outcome == nil else { return [] }
    outcome = result
    return .resume
  }
}
