// HitAges: the two numbers of a hit's head that grow with the second.

import Model

/// What `Age` and `max-age` say now, and how many digits each has: a prepared head has room for as many.
struct HitAges {
  /// Digits of the two.
  struct Widths: Equatable {
    let age: Int
    let maxAge: Int

    /// Of a head that is not to be made current.
    static let none = Widths(age: 0, maxAge: 0)
  }

  let age: Int
  let maxAge: Int
  let widths: Widths

  init(of freshness: Freshness, at now: UnixTime) {
    age = freshness.age(at: now)
    maxAge = freshness.clientMaxAge(atAge: age)
    widths = Widths(age: ResponseHead.width(of: age), maxAge: ResponseHead.width(of: maxAge))
  }
}
