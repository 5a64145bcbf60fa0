// Exchange: when a request was sent and its response arrived, and when that is seen.

/// The times of a request and its response, by a clock that is never set.
public struct Exchange: Hashable, Sendable, Codable {
  /// When the request was sent. A retry is a request of its own.
  public let requestedAt: ContinuousClock.Instant
  /// When the head of the response was complete.
  public let receivedAt: ContinuousClock.Instant

  /// Creates the times of an exchange.
  public init(requestedAt: ContinuousClock.Instant, receivedAt: ContinuousClock.Instant) {
    self.requestedAt = requestedAt
    self.receivedAt = receivedAt
  }

  /// How long the response took, in seconds (RFC 9111, section 4.2.3: `response_delay`).
  public var delay: Int { (receivedAt - requestedAt).roundedSeconds }
}

/// A moment by the system's clock and by one that is never set.
public struct Moment: Sendable {
  /// The system's time.
  public let time: UnixTime
  /// The same moment by the other clock.
  public let instant: ContinuousClock.Instant

  /// Creates a moment.
  public init(_ time: UnixTime, instant: ContinuousClock.Instant = .now) {
    self.time = time
    self.instant = instant
  }

  /// Returns the system's time at an instant, as seen from this moment.
  public func time(of other: ContinuousClock.Instant) -> UnixTime {
    UnixTime(seconds: time.seconds - (instant - other).roundedSeconds)
  }
}

extension Duration {
  fileprivate var roundedSeconds: Int { Int((self / .seconds(1)).rounded()) }
}
