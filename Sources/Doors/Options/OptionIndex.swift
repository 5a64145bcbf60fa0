// OptionIndex: reads options by name into a draft, and notes which are not exact.

import Core

/// What the options of an address are read into.
protocol OptionDraft: Sendable {
  /// What is asked for so far.
  var translation: DoorTranslation { get set }
}

extension DoorOption where Draft: OptionDraft {
  /// An option whose one argument becomes one parameter.
  init(
    _ names: String..., to parameter: String, standing: DoorStanding = .exact,
    _ value: @escaping ArgumentReader
  ) {
    self.names = names
    self.standing = standing
    read = { arguments, draft throws(OptionFault) in
      draft.translation[parameter] = try value(arguments.first ?? "")
    }
  }

  /// An option whose one argument becomes a property of the draft.
  init<Value>(
    _ names: String..., into property: WritableKeyPath<Draft, Value> & Sendable,
    standing: DoorStanding = .exact,
    _ value: @escaping @Sendable (String) throws(OptionFault) -> Value
  ) {
    self.names = names
    self.standing = standing
    read = { arguments, draft throws(OptionFault) in
      draft[keyPath: property] = try value(arguments.first ?? "")
    }
  }
}

/// The options of a table by name. A row may be of one value only: `name=value`.
struct OptionIndex<Draft: OptionDraft>: Sendable {
  private let options: [String: DoorOption<Draft>]

  init(_ table: [DoorOption<Draft>]) {
    let pairs = table.flatMap { option in option.names.map { ($0, option) } }
    options = Dictionary(pairs) { first, _ in first }
  }

  /// Whether there is an option of a name.
  func has(_ name: String) -> Bool { options[name] != nil }

  /// Reads an option into a draft, and notes if it is not exact.
  ///
  /// - Returns: whether the option exists.
  @discardableResult
  func read(_ name: String, _ arguments: [String], into draft: inout Draft) throws(OptionFault)
    -> Bool
  {
    let pair = name + "=" + (arguments.first ?? "")
    let (key, found) = options[pair].map { (pair, $0) } ?? (name, options[name])
    guard let found else { return false }
    if case .refused(let reason) = found.standing { throw .unsupported(reason) }
    try found.read(arguments, &draft)
    if found.standing != .exact { draft.translation.notes.append(DoorNote(key, found.standing)) }
    return true
  }
}
