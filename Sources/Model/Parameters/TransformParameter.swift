// TransformParameter: the table of parameters that change an image, for queries, keys and workers.

/// A parameter of a transform: its name, its values, and its place in the transform.
///
/// Queries of clients, the text of cache keys, and jobs for workers are read and written by these
/// rows, so a parameter that has a row is part of all three.
public final class TransformParameter: Sendable {
  /// Its name.
  public let name: String
  /// The group that it belongs to; `nil`: no client may name it, and the server sets it.
  public let group: ParameterGroup?
  /// What it does, in one line for people.
  public let help: String
  /// Whether every client may use it, unless all requests need a signature. Others need one with
  /// `signing.mode` `options`.
  public let isPlain: Bool
  /// Its values.
  public let allowed: AllowedValues
  /// The value that stands for an absent parameter; `nil` if no value does.
  public let standard: String?
  /// Stores a value in the draft. Returns `false` if the value is not allowed.
  public let read: @Sendable (ParameterText, inout TransformDraft) -> Bool
  /// Returns the one text of the draft's value; `nil` for the default.
  let text: @Sendable (inout TransformDraft) -> String?

  /// Passes a property of a draft on, to be read or set. A key path would copy the draft.
  typealias Access<Value> = @Sendable (inout TransformDraft, (inout Value) -> Void) -> Void

  /// Creates a row with a reader and a writer of its own.
  init(
    _ name: String, _ allowed: AllowedValues, in group: ParameterGroup?, isPlain: Bool = false,
    standard: String? = nil, _ help: String = "",
    read: @escaping @Sendable (ParameterText, inout TransformDraft) -> Bool,
    text: @escaping @Sendable (inout TransformDraft) -> String?
  ) {
    self.name = name
    self.group = group
    self.help = help
    self.isPlain = isPlain
    self.allowed = allowed
    self.standard = standard
    self.read = read
    self.text = text
  }

  /// Creates the row of a property that has a default.
  ///
  /// - Parameter writes: Whether a draft's value is written, although it is not the default.
  convenience init<Value>(
    _ name: String, _ kind: ParameterKind<Value>, in group: ParameterGroup, isPlain: Bool = false,
    _ help: String,
    where writes: @escaping @Sendable (inout TransformDraft) -> Bool = { _ in true },
    at access: @escaping Access<Value>
  ) {
    var none = TransformDraft()
    var standard: Value?
    access(&none) { standard = $0 }
    let initial = standard
    self.init(
      name, kind.allowed, in: group, isPlain: isPlain, standard: initial.flatMap(kind.text), help,
      read: { given, draft in
        guard let value = kind.read(given) else { return false }
        access(&draft) { $0 = value }
        return true
      },
      text: { draft in
        var text: String?
        access(&draft) { if $0 != initial { text = kind.text($0) } }
        return text == nil || writes(&draft) ? text : nil
      })
  }

  /// Creates the row of a property that may be absent.
  convenience init<Value>(
    _ name: String, _ kind: ParameterKind<Value>, in group: ParameterGroup, isPlain: Bool = false,
    _ help: String,
    where writes: @escaping @Sendable (inout TransformDraft) -> Bool = { _ in true },
    at access: @escaping Access<Value?>
  ) {
    self.init(name, kind.optional, in: group, isPlain: isPlain, help, where: writes, at: access)
  }

  /// The rows of one group of the transform.
  struct Section: Sendable {
    /// Whether the draft asks for nothing of this group, so that no row has a text.
    let isDefault: @Sendable (inout TransformDraft) -> Bool
    /// The rows, in the order of their texts.
    let rows: [TransformParameter]
  }

  /// All rows, in the order of their texts.
  static let sections = [
    Section(isDefault: { $0.transform.sizing == Sizing() }, rows: Sizing.parameters),
    Section(
      isDefault: { $0.transform.selection == Selection() && $0.transform.sizing.angle == 0 },
      rows: Selection.parameters),
    Section(isDefault: { $0.transform.effects == Effects() }, rows: Effects.parameters),
    Section(
      isDefault: { $0.placement == WatermarkPlacement() }, rows: WatermarkPlacement.parameters),
    Section(
      isDefault: { $0.transform.output == OutputOptions() && $0.product == .image },
      rows: OutputOptions.parameters),
  ]

  /// All rows.
  public static let table = sections.flatMap(\.rows)
}
