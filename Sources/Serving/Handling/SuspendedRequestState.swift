// SuspendedRequestState: the life of a suspended request, as a state machine without sockets, threads or clocks.

import Model

/// How a suspended request ended.
enum Outcome: Sendable {
  /// There is an image.
  case delivery(ImageDelivery)
  /// There is an image that is still coming in.
  case coming(StreamingDelivery)
  /// An operator's wish was done: JSON, with a status and fields of the head.
  case done([UInt8], status: Int, fields: [AnswerField] = [])
  /// There is none.
  case failure(ImageError)
  /// Nobody is there to answer.
  case gone
}

/// A field of an answer's head.
struct AnswerField: Sendable {
  let name: StaticString
  let value: String
}

/// A request waits until the first of five things: its work is done, its work failed, its deadline, its client's
/// leaving, the server's end. Whichever comes first decides the answer; the others are too late and change nothing.
struct SuspendedRequestState: Sendable {
  /// What is to be done after an event, by whoever reported it.
  struct Actions: Hashable, OptionSet, Sendable {
    let rawValue: Int
    /// Nobody wants the work any more: cancel its task.
    static let cancelWork = Actions(rawValue: 1)
    /// The answer is known: resume the connection. Comes exactly once in a life.
    static let resume = Actions(rawValue: 2)
  }

  private enum Work { case notStarted, running, done }

  private var outcome: Outcome?
  private var work = Work.notStarted

  /// The work's task exists now. It may be too late for it, or it may have ended already.
  mutating func workStarted() -> Actions {
    guard work == .notStarted else { return [] }
    work = .running
    return outcome == nil ? [] : .cancelWork
  }

  /// The work came to its end.
  mutating func workEnded(_ result: Outcome) -> Actions {
    work = .done
    return decide(result)
  }

  /// The request ends although its work does not.
  mutating func interrupted(_ reason: Outcome) -> Actions {
    var actions = decide(reason)
    if actions.contains(.resume), work == .running { actions.insert(.cancelWork) }
    return actions
  }

  /// The decision, for whoever writes the answer after the connection was resumed.
  func decided() -> Outcome? { outcome }

  private mutating func decide(_ result: Outcome) -> Actions {
    guard outcome == nil else { return [] }
    outcome = result
    return .resume
  }
}
