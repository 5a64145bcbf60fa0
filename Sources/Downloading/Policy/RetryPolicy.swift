// RetryPolicy: decides whether and when a failed hop is retried. Has no side effects.

import Model
import Platform

/// Retries hops after transient failures that had no effect at the origin.
struct RetryPolicy: Sendable {
  /// The failures that may be retried.
  enum Failure: Hashable {
    /// Name resolution, connection, connection time-out or reset, before the first byte of a
    /// response.
    case connection
    /// A response with an error status, and its `Retry-After` as sent.
    case status(Int, retryAfter: String?)
  }

  /// Maximum retries of one load, over all hops.
  let limit: Int
  /// Average delay of the first retry; doubles with each further one.
  let delay: Duration

  /// Maximum `Retry-After` in seconds; clients do not wait longer for an image.
  static let longestRetryAfter = 2

  /// Returns the delay before the next retry, or `nil` for no retry.
  ///
  /// - Parameters:
  ///   - failure: the failure of the hop.
  ///   - retries: retries of the load so far.
  ///   - timeLeft: time until the load's time-out, which retries do not extend.
  ///   - chance: a random number from 0 to 1 that selects the jitter within ± 50 %, so that loads
  ///     that failed together do not retry together.
  ///   - now: the current time.
  func delay(
    after failure: Failure, retries: Int, timeLeft: Duration, chance: Double, now: UnixTime
  ) -> Duration? {
    guard retries < limit else { return nil }
    var wait = Backoff(delay, jitter: 0.5...1.5).pause(after: retries, chance: chance)
    if case .status(let status, let retryAfter) = failure {
      guard [502, 503, 504].contains(status), let retryAfter,
        let seconds = Self.seconds(ofRetryAfter: retryAfter, now: now),
        seconds <= Self.longestRetryAfter
      else { return nil }
      // Not earlier than the origin asks (RFC 9110, section 10.2.3).
      wait += .seconds(seconds)
    }
    return wait < timeLeft ? wait : nil
  }

  /// Parses `Retry-After`, a number of seconds or a date. Returns seconds from `now`, from 0 to
  /// `Freshness.unlimited`, or `nil` if invalid.
  static func seconds(ofRetryAfter text: String, now: UnixTime) -> Int? {
    if !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) {
      return min(Int(text) ?? .max, Freshness.unlimited)
    }
    return HTTPDate.parse(text, now: now).map {
      min(max($0.seconds - now.seconds, 0), Freshness.unlimited)
    }
  }
}
