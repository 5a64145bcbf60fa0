// Options: the options of peers, the drafts that they are read into, and why one is refused.

import Core

/// Why an address is refused.
struct DoorFault: Error {
  /// What a peer's answer depends on.
  enum Kind { case invalid, unsupported, denied, source, forbidden }

  let kind: Kind
  let reason: String
  /// The answer, if it does not follow from the kind.
  var answer: DoorAnswer?

  /// The peer itself takes no such text; completes "NAME: …".
  static func invalid(_ reason: String) -> Self { Self(kind: .invalid, reason: reason) }
  /// The value is valid at the peer, and nothing here equals it.
  static func unsupported(_ reason: String) -> Self { Self(kind: .unsupported, reason: reason) }
  /// A signature or a permission is missing.
  static func denied(_ reason: String) -> Self { Self(kind: .denied, reason: reason) }
  /// The source is no URL.
  static func source(_ reason: String) -> Self { Self(kind: .source, reason: reason) }
  /// The operator does not allow the source.
  static func forbidden(_ reason: String) -> Self { Self(kind: .forbidden, reason: reason) }
  /// The peer has its own answer.
  static func answered(_ answer: DoorAnswer) -> Self {
    Self(kind: .invalid, reason: answer.reason, answer: answer)
  }

  /// Returns the fault with the name of its option before the reason.
  func of(_ name: String) -> Self { Self(kind: kind, reason: name + ": " + reason) }
}

/// What the options of an address are read into.
protocol OptionDraft: Sendable {
  /// What is asked for so far.
  var translation: DoorTranslation { get set }
}

extension OptionDraft {
  /// A parameter of Pictor's query.
  subscript(parameter: String) -> String? {
    get { translation[parameter] }
    set { translation[parameter] = newValue }
  }

  /// Notes how an option fares, once, and not more than anyone reads.
  mutating func note(_ option: String, _ standing: DoorStanding) {
    let note = DoorNote(String(option.prefix(40)), standing)
    guard translation.notes.count < 50, !translation.notes.contains(note) else { return }
    translation.notes.append(note)
  }

  /// Returns the value of `flip` and `trim_equal` for two axes; `nil` for none.
  static func axes(across: Bool, down: Bool) -> String? {
    across || down ? (across ? "h" : "") + (down ? "v" : "") : nil
  }
}

/// A row of a peer's page in `docs/moving/`.
struct DoorOptionRow: Hashable, Sendable {
  /// The names of the option, the longest first.
  let names: [String]
  /// How it fares. An option that is refused is refused with every value.
  let standing: DoorStanding
}

/// An option of a peer, a row of its table.
struct DoorOption<Draft: OptionDraft>: Sendable {
  typealias Read = @Sendable (_ given: Arguments, _ draft: inout Draft) throws(DoorFault) -> Void

  let row: DoorOptionRow
  let read: Read
  private let count: Int
  /// Whether `read` notes the values with which the option is not exact.
  private let notesItself: Bool

  /// An option by its names, which blanks separate. `mostly` says how it is near with some values.
  init(
    _ names: String, _ standing: DoorStanding = .exact, atMost count: Int = .max,
    mostly: String? = nil, read: @escaping Read = { _, _ in }
  ) {
    row = DoorOptionRow(
      names: names.split(separator: " ").map { String($0) },
      standing: mostly.map { .near($0) } ?? standing)
    self.count = count
    self.read = read
    notesItself = mostly != nil
  }

  /// An option whose first argument becomes a parameter of Pictor, by default of its own name.
  init(
    _ names: String, to parameter: String? = nil, near: String? = nil, _ reader: Reader<String?>
  ) {
    let parameter = parameter ?? String(names.prefix { $0 != " " && $0 != "=" })
    self.init(names, into: \.[parameter], near: near, reader)
  }

  /// An option whose first argument becomes a property of the draft.
  init<Value>(
    _ names: String, into property: WritableKeyPath<Draft, Value> & Sendable,
    near: String? = nil, _ reader: Reader<Value>
  ) {
    self.init(names, near.map { .near($0) } ?? .exact) { given, draft throws(DoorFault) in
      draft[keyPath: property] = try reader.read(given[0])
    }
  }

  /// Reads arguments into a draft, and notes by a name if the option is not exact.
  func apply(_ arguments: [String], as name: String, to draft: inout Draft) throws(DoorFault) {
    if case .refused(let reason) = row.standing { throw .unsupported(reason) }
    guard arguments.count <= count else { throw .invalid("at most \(count) arguments are allowed") }
    try read(Arguments(texts: arguments), &draft)
    if row.standing != .exact, !notesItself { draft.note(name, row.standing) }
  }
}

/// The options of a peer. A row may be of one value only: `name=value`.
struct OptionTable<Draft: OptionDraft>: Sendable {
  let rows: [DoorOptionRow]
  private let options: [String: DoorOption<Draft>]

  init(_ options: [DoorOption<Draft>]) {
    rows = options.map(\.row)
    let pairs = options.flatMap { option in option.row.names.map { ($0, option) } }
    self.options = Dictionary(pairs) { first, _ in first }
  }

  subscript(name: String) -> DoorOption<Draft>? { options[name] }

  /// Reads an option into a draft. Returns whether it exists.
  @discardableResult
  func read(
    _ name: String, _ arguments: [String], into draft: inout Draft
  ) throws(DoorFault) -> Bool {
    let pair = name + "=" + (arguments.first ?? "")
    let (key, found) = options[pair].map { (pair, $0) } ?? (name, options[name])
    guard let found else { return false }
    try found.apply(arguments, as: key, to: &draft)
    return true
  }

  /// Reads a parameter of a peer that ignores unknown names and invalid values.
  func read(
    _ name: String, _ value: String, of peer: Peer, into draft: inout Draft
  ) throws(DoorFault) {
    do { try read(name, [value], into: &draft) } catch {
      guard error.kind == .invalid else { throw error.of("\(name)='\(value)'") }
      draft.note(name, .ignored("\(peer.rawValue) takes only \(error.reason)"))
    }
  }
}
