// HitFields: the fields of a hit's head whose lengths vary: `Age`, `max-age` and the request's id.

import Model

/// The current values of `Age` and `max-age`, and how much space each field takes. A prepared head has space for fields
/// of fixed lengths.
struct HitFields {
  /// The digits of the two, and the characters of the id, which may be the client's own.
  struct Widths: Equatable {
    let age: Int
    let maxAge: Int
    let id: Int

    /// The widths of a head that is not updated.
    static let none = Widths(age: 0, maxAge: 0, id: 0)
  }

  let age: Int
  let maxAge: Int
  let widths: Widths

  /// Takes the values at `now`, for a response whose id has `idLength` characters.
  init(of freshness: Freshness, at now: UnixTime, idLength: Int) {
    age = freshness.age(at: now)
    maxAge = freshness.clientMaxAge(atAge: age)
    widths = Widths(
      age: ResponseHead.width(of: age), maxAge: ResponseHead.width(of: maxAge), id: idLength)
  }
}
