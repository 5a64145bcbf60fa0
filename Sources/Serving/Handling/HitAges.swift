// HitAges: what a hit's head has room for: the two numbers that grow with the second, and the request's id.

import Model

/// The current values of `Age` and `max-age`, with the digits of each. A prepared head has space
/// for a fixed number of digits.
struct HitAges {
  /// Digits of the two, and characters of the id, which is the client's own where it sent one.
  struct Widths: Equatable {
    let age: Int
    let maxAge: Int
    let id: Int

    /// Of a head that is not to be made current.
    static let none = Widths(age: 0, maxAge: 0, id: 0)
  }

  let age: Int
  let maxAge: Int
  let widths: Widths

  /// The numbers at `now`, for an answer whose id has `idLength` characters.
  init(of freshness: Freshness, at now: UnixTime, idLength: Int) {
    age = freshness.age(at: now)
    maxAge = freshness.clientMaxAge(atAge: age)
    widths = Widths(
      age: ResponseHead.width(of: age), maxAge: ResponseHead.width(of: maxAge), id: idLength)
  }
}
