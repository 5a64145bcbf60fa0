// OptionTable: what the options of a peer become, and how they are documented.

import Core

/// Why an option is refused; completes "NAME: …".
struct OptionFault: Error {
  let reason: String
  /// Whether Pictor cannot do what a valid value asks for.
  var isUnsupported = false

  init(_ reason: String) { self.reason = reason }

  /// The value is valid at the peer, and nothing here equals it.
  static func unsupported(_ reason: String) -> OptionFault {
    var fault = OptionFault(reason)
    fault.isUnsupported = true
    return fault
  }
}

/// An option of a peer: a row of its table, which parsing and `docs/moving/` share.
struct DoorOption<Draft>: Sendable {
  /// Its names, the longest first.
  let names: [String]
  /// How it fares. An option that is refused is refused with every value.
  let standing: DoorStanding
  /// Reads its arguments into the draft.
  let read: @Sendable (_ arguments: [String], _ draft: inout Draft) throws(OptionFault) -> Void

  init(
    _ names: String..., standing: DoorStanding = .exact,
    read:
      @escaping @Sendable (_ arguments: [String], _ draft: inout Draft)
      throws(OptionFault) -> Void = { _, _ throws(OptionFault) in }
  ) {
    self.names = names
    self.standing = standing
    self.read = read
  }
}

/// A row of a peer's page in `docs/moving/`.
public struct DoorOptionRow: Hashable, Sendable {
  /// The names of the option.
  public let names: [String]
  /// How it fares.
  public let standing: DoorStanding
}

extension DoorOption {
  /// The row of the peer's page.
  var row: DoorOptionRow { DoorOptionRow(names: names, standing: standing) }
}
