// ImageQuery: the query of /image taken apart: which parameters it names, and their values, decoded.

import Model

/// Parameters and their values, each parameter once.
struct ImageQuery: Sendable {
  private struct Item {
    /// The parameter's row in the table.
    let row: Int
    let value: String

    var parameter: ImageParameter { ImageParameter.table[row] }
  }

  private var items: [Item] = []

  /// Takes a raw query apart, without its `?`. Values are decoded and not looked at.
  ///
  /// - Parameters:
  ///   - query: The query.
  ///   - route: `image`, or `info` with its fewer parameters.
  /// - Throws: `unknownParameter`, `invalidParameter` (what cannot be decoded, or is given twice), or `invalidURL`,
  ///   whichever is met first from left to right.
  init(_ query: some Collection<UInt8>, route: Route = .image) throws(ImageError) {
    for piece in query.split(separator: UInt8(ascii: "&")) {
      let end = piece.firstIndex(of: UInt8(ascii: "=")) ?? piece.endIndex
      let rawValue = piece[end...].dropFirst()
      guard let row = Self.row(ofName: piece[..<end]),
        route == .image || ImageParameter.table[row].isForInfo
      else {
        throw .unknownParameter(displayable(piece[..<end]))
      }
      let name = ImageParameter.table[row].name
      guard let value = PercentEncoding.decode(rawValue) else {
        let reason = "it is not percent-encoded UTF-8 without NUL"
        throw name == "url"
          ? .invalidURL(displayable(rawValue), reason: reason)
          : .invalidParameter(name: name, value: displayable(rawValue), allowed: reason)
      }
      guard !items.contains(where: { $0.row == row }) else {
        throw .invalidParameter(
          name: name, value: displayable(value), allowed: "it may be given only once")
      }
      items.append(Item(row: row, value: value))
    }
  }

  /// Names that other image servers use, and the parameters they stand for.
  private static let aliases = ["width": "w", "height": "h", "q": "quality", "dpr": "scale"]

  /// The row of a name or an alias. Few clients encode names, so a plain name is looked for first.
  private static func row(ofName raw: some Collection<UInt8>) -> Int? {
    let table = ImageParameter.table
    if let row = table.firstIndex(where: { $0.name.utf8.elementsEqual(raw) }) { return row }
    guard let given = PercentEncoding.decode(raw) else { return nil }
    let name = aliases[given] ?? given
    return table.firstIndex { $0.name == name }
  }

  /// Whether a parameter is given.
  func has(_ name: String) -> Bool { items.contains { $0.parameter.name == name } }

  /// With the parameters of the preset it names, where it does not give them itself.
  func withPreset(_ rules: RequestRules) -> ImageQuery {
    guard !rules.presets.isEmpty,
      let name = items.first(where: { $0.parameter.name == "preset" })?.value,
      let preset = rules.presets[name]
    else { return self }
    var query = self
    query.items += preset.items.filter { item in !items.contains { $0.row == item.row } }
    return query
  }

  /// Sees to it that nothing is asked for but presets, where that is the rule.
  ///
  /// - Throws: `forbiddenParameter` for the first parameter that says what the image is to be, `missingParameter`
  ///   where no preset does.
  func checkPresetsOnly(_ rules: RequestRules) throws(ImageError) {
    guard rules.presetsOnly else { return }
    // What is redirected names a format beside its preset.
    let forbidden = items.first {
      $0.parameter.shapesImage && !(rules.redirectsAuto && $0.parameter.name == "format")
    }
    if let forbidden { throw .forbiddenParameter(forbidden.parameter.name) }
    if !has("preset") { throw .missingParameter("preset") }
  }

  /// Refuses what only presets may ask for.
  ///
  /// - Throws: `forbiddenParameter`.
  func checkAllowed(_ rules: RequestRules) throws(ImageError) {
    let enlarges = items.contains { $0.parameter.name == "enlarge" && $0.value != "0" }
    if enlarges, !rules.allowsEnlarging { throw .forbiddenParameter("enlarge") }
  }

  /// What the parameters come to.
  ///
  /// - Throws: `invalidParameter` for the first value that is not allowed.
  func draft(_ rules: RequestRules) throws(ImageError) -> ImageParameter.Draft {
    var draft = ImageParameter.Draft(rules: rules)
    for item in items where !item.parameter.apply(item.value, &draft) {
      throw .invalidParameter(
        name: item.parameter.name, value: displayable(item.value),
        allowed: item.parameter.allowed(rules))
    }
    return draft
  }
}
