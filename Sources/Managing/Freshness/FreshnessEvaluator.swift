// FreshnessEvaluator: computes the freshness of an origin's response at the current time.

import Model

/// Applies the freshness policy to responses that arrive now.
struct FreshnessEvaluator: Sendable {
  private let policy: any FreshnessPolicy
  private let now: @Sendable () -> UnixTime

  init(policy: any FreshnessPolicy, now: @escaping @Sendable () -> UnixTime) {
    self.policy = policy
    self.now = now
  }

  /// Returns the freshness of the response to a request.
  ///
  /// - Parameter timings: how long the response took. The request and receive times follow from it.
  func freshness(
    of origin: OriginResponse, for request: ImageRequest, timings: Timings = Timings()
  ) -> Freshness {
    freshness(
      of: origin, from: request.source, isAuthorized: request.isAuthorized, timings: timings)
  }

  /// Returns the freshness of a response from `url`.
  func freshness(
    of origin: OriginResponse, from url: SourceURL, isAuthorized: Bool, timings: Timings = Timings()
  ) -> Freshness {
    func before(_ moment: UnixTime, by duration: Duration?) -> UnixTime {
      UnixTime(seconds: moment.seconds - Int((duration ?? .zero).inSeconds.rounded()))
    }
    let receivedAt = before(now(), by: timings.download)
    return policy.freshness(
      of: origin, from: url, isAuthorized: isAuthorized,
      requestedAt: before(receivedAt, by: timings.ttfb), receivedAt: receivedAt)
  }

  /// Returns the short freshness of an image that is damaged, or not verified yet.
  func limited(_ freshness: Freshness) -> Freshness { freshness.ofDamaged(at: now()) }
}
