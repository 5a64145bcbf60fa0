// HitFields: a hit's fields of varying length: `Age`, `max-age`, `s-maxage`, the request's id.

import Model

/// The current values of `Age`, `max-age` and `s-maxage`, and how much space each field takes. A
/// prepared head has space for fields of fixed lengths.
struct HitFields {
  /// The digits of the three, and the characters of the id, which may be the client's own.
  struct Widths: Equatable {
    let age: Int
    let maxAge: Int
    /// 0 for a head without `s-maxage`.
    let sharedMaxAge: Int
    let id: Int
    /// Whether the URL expires, so that caches may not serve the response stale.
    let isExpiring: Bool
    /// The hints in `Vary` (`HintNeeds.number`). URLs with and without them share variants.
    var hints: UInt8 = 0

    /// The widths of a head that is not updated.
    static let none = Widths(age: 0, maxAge: 0, sharedMaxAge: 0, id: 0, isExpiring: false)
  }

  let age: Int
  let maxAge: Int
  /// 0 for a head without `s-maxage`.
  let sharedMaxAge: Int
  let widths: Widths

  /// Takes the values at `now`, for a response whose id has `idLength` characters.
  ///
  /// - Parameters:
  ///   - expiry: when the request's URL expires.
  ///   - hints: the hints that the URL follows.
  init(
    of freshness: Freshness, at now: UnixTime, idLength: Int, until expiry: UnixTime?,
    hints: UInt8 = 0
  ) {
    age = freshness.age(at: now)
    let latest = freshness.latestMaxAge(at: now, until: expiry)
    maxAge = min(freshness.clientMaxAge(atAge: age), latest)
    let isShared = freshness.isOtherForClients
    sharedMaxAge = isShared ? min(freshness.lifetime, latest) : 0
    widths = Widths(
      age: ResponseHead.width(of: age), maxAge: ResponseHead.width(of: maxAge),
      sharedMaxAge: isShared ? ResponseHead.width(of: sharedMaxAge) : 0, id: idLength,
      isExpiring: expiry != nil, hints: hints)
  }
}

extension Freshness {
  /// Returns the highest `max-age` of a response to a URL that expires: the response's age then. It
  /// does not depend on `now`, unless the clock was set.
  func latestMaxAge(at now: UnixTime, until expiry: UnixTime?) -> Int {
    expiry.map { age(at: now) + max($0.seconds - now.seconds, 0) } ?? .max
  }
}
