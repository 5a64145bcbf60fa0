// FreshnessEvaluator: computes the freshness of an origin's response at the current time.

import Core

/// Applies the freshness policy to responses that arrive now.
struct FreshnessEvaluator: Sendable {
  let policy: any FreshnessPolicy
  let now: @Sendable () -> UnixTime

  /// Returns the freshness of the response to a request.
  func freshness(of origin: OriginResponse, for request: ImageRequest) -> Freshness {
    freshness(of: origin, from: request.source, isAuthorized: request.isAuthorized)
  }

  /// Returns the freshness of a response from `url`.
  func freshness(
    of origin: OriginResponse, from url: SourceURL, isAuthorized: Bool
  ) -> Freshness {
    policy.freshness(of: origin, from: url, isAuthorized: isAuthorized, at: Moment(now()))
  }

  /// Returns the short freshness of an image that is damaged, or not verified yet.
  func limited(_ freshness: Freshness) -> Freshness { freshness.ofDamaged(at: now()) }
}
