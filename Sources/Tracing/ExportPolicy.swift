// ExportPolicy: what becomes of a batch after an attempt to send it.

import Platform

/// Decides by the collector's answer (OpenTelemetry protocol 1.x, "OTLP/HTTP Response").
struct ExportPolicy: Sendable {
  /// What follows an attempt.
  enum Step: Equatable, Sendable {
    /// The collector took the batch, except `rejected` spans.
    case done(rejected: Int)
    /// Send the batch again after this time.
    case retry(after: Duration)
    /// The collector refused the batch; it would do so again.
    case refused
    /// The batch is given up.
    case lost
  }

  /// The most attempts of a batch.
  var attempts = 5
  /// The first back-off; each further one is twice as long.
  var delay: Duration = .seconds(1)
  /// The longest back-off without a `Retry-After`.
  var longestDelay: Duration = .seconds(30)
  /// The longest `Retry-After` that is waited for. Meanwhile the queue fills up.
  var longestWish: Duration = .seconds(300)

  /// Returns what follows.
  ///
  /// - Parameters:
  ///   - attempt: the number of the attempt, from 1.
  ///   - chance: 0–1, for jitter: a back-off takes between half of its time and all.
  func step(after reply: CollectorReply, attempt: Int, chance: Double) -> Step {
    var wish: Duration?
    switch reply {
    case .answered(200..<300, _, let rejected): return .done(rejected: rejected)
    case .answered(let status, let seconds, _):
      guard [429, 502, 503, 504].contains(status) else { return .refused }
      wish = seconds.map { .seconds($0) }
    case .failed: break
    }
    guard attempt < attempts else { return .lost }
    if let wish { return .retry(after: min(wish, longestWish)) }
    let backoff = Backoff(delay, longest: longestDelay, jitter: 0.5...1)
    return .retry(after: backoff.pause(after: attempt - 1, chance: chance))
  }
}

/// The outcome of a request to the collector.
enum CollectorReply: Equatable, Sendable {
  /// A response, with its `Retry-After` in seconds, and the number of spans it says it refused.
  case answered(status: Int, retryAfter: Int?, rejected: Int)
  /// No response, and why.
  case failed(String)

  /// What is wrong; `nil` if nothing is.
  var problem: String? {
    switch self {
    case .answered(200..<300, _, 0): nil
    case .answered(200..<300, _, _): "spans rejected"
    case .answered(let status, _, _): "status \(status)"
    case .failed(let reason): reason
    }
  }
}
