// RetryPolicy: whether a hop that failed is tried once more, and when. It decides and does nothing.

import Model

/// When a failed hop is tried again: after failures that are often over in a moment, and where nothing was done yet.
struct RetryPolicy: Sendable {
  /// How a hop failed, as far as it matters here.
  enum Failure: Hashable {
    /// The name, the connection or its time-out, a reset: before any byte of an answer came.
    case connection
    /// An answer with an error status, and its `Retry-After` as sent.
    case status(Int, retryAfter: String?)
  }

  /// Most retries of one load, all its hops together.
  let limit: Int
  /// The first retry's delay on average; it doubles with each further one.
  let delay: Duration

  /// A longer `Retry-After` is no use to someone who waits for an image.
  static let longestRetryAfter = 2

  /// How long to wait before trying again; `nil`: not again.
  ///
  /// - Parameters:
  ///   - retries: how often the load was tried again already.
  ///   - timeLeft: until the load's time-out, which no retry moves.
  ///   - chance: 0–1, where in the range of ± 50 % the delay falls, so that a crowd that failed together does not come
  ///     back together.
  func delay(
    after failure: Failure, retries: Int, timeLeft: Duration, chance: Double, now: UnixTime
  ) -> Duration? {
    guard retries < limit else { return nil }
    var wait = delay * (0.5 + chance) * Double(1 << min(retries, 16))
    if case .status(let status, let retryAfter) = failure {
      guard [502, 503, 504].contains(status), let retryAfter,
        let seconds = Self.seconds(ofRetryAfter: retryAfter, now: now),
        seconds <= Self.longestRetryAfter
      else { return nil }
      // No sooner than the origin asks for (RFC 9110, section 10.2.3).
      wait += .seconds(seconds)
    }
    return wait < timeLeft ? wait : nil
  }

  /// `Retry-After` in seconds from `now`, at most `Freshness.unlimited`: seconds or a date, one that is past meaning now;
  /// `nil` for anything else.
  static func seconds(ofRetryAfter text: String, now: UnixTime) -> Int? {
    if !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) {
      return min(Int(text) ?? .max, Freshness.unlimited)
    }
    return HTTPDate.parse(text, now: now).map {
      min(max($0.seconds - now.seconds, 0), Freshness.unlimited)
    }
  }
}
