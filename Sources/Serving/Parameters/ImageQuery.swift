// ImageQuery: splits the query of /image into parameters with decoded values.

import Core

/// Parameters and their values, each parameter at most once.
struct ImageQuery: Sendable {
  private struct Item {
    /// The index of the parameter's row in the table.
    let row: Int
    let value: String

    var parameter: ImageParameter { ImageParameter.table[row] }
  }

  /// What a query asks for; an endpoint has one.
  enum Kind: Sendable {
    /// An image.
    case image
    /// A description of the source, which has fewer parameters.
    case info
  }

  private var items: [Item] = []

  /// Splits a raw query, without its `?`. Decodes values but does not check them.
  ///
  /// - Parameter ignored: names that are skipped, but for those in the table.
  /// - Throws: the first error from left to right: `unknownParameter`, `invalidParameter`
  ///   (undecodable or repeated), or `invalidURL`.
  init(
    _ query: some Collection<UInt8>, kind: Kind = .image, ignoring ignored: Set<String> = []
  ) throws(ImageError) {
    for piece in query.split(separator: UInt8(ascii: "&")) {
      let end = piece.firstIndex(of: UInt8(ascii: "=")) ?? piece.endIndex
      let rawValue = piece[end...].dropFirst()
      if !ignored.isEmpty, Self.row(ofName: piece[..<end]) == nil,
        let name = PercentEncoding.decode(piece[..<end]), ignored.contains(name)
      {
        continue
      }
      guard let row = Self.row(ofName: piece[..<end]),
        kind == .image || ImageParameter.table[row].isForInfo
      else {
        throw .unknownParameter(
          displayable(piece[..<end]), hint: Self.hint(forName: piece[..<end]))
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

  /// Names that other image servers use, with their equivalents.
  private static let aliases = ["width": "w", "height": "h", "q": "quality", "dpr": "scale"]

  /// Returns the row of a name or an alias. Tries the raw name first, because few clients encode
  /// names.
  private static func row(ofName raw: some Collection<UInt8>) -> Int? {
    let table = ImageParameter.table
    if let row = table.firstIndex(where: { $0.name.utf8.elementsEqual(raw) }) { return row }
    guard let given = PercentEncoding.decode(raw) else { return nil }
    let name = aliases[given] ?? given
    return table.firstIndex { $0.name == name }
  }

  /// Names of other image servers without an exact equivalent, with what comes nearest.
  private static let foreign = [
    "size": ["w", "h"], "resize": ["w", "h"], "fm": ["format"], "output": ["format"],
    "type": ["format"], "ext": ["format"], "src": ["url"], "source": ["url"], "image": ["url"],
    "uri": ["url"], "mode": ["fit"], "gravity": ["position"], "bg": ["background"],
    "signature": ["sig"], "expires": ["exp"],
  ]

  /// Returns the end of the message for an unknown name: what the client probably meant.
  private static func hint(forName raw: some Collection<UInt8>) -> String {
    guard row(ofName: raw) == nil, let name = PercentEncoding.decode(raw) else { return "" }
    let escaped = "amp;"
    if name.hasPrefix(escaped), row(ofName: name.utf8.dropFirst(escaped.utf8.count)) != nil {
      return "; '&amp;' is '&' escaped for HTML, and a URL has '&'"
    }
    let names = ImageParameter.table.map(\.name) + aliases.keys.sorted()
    return NearestNames.question(
      foreign[name.lowercased()] ?? NearestNames.of(name, among: names))
  }

  /// Returns the parameter that a raw name or alias stands for; `nil` if there is none.
  static func name(of raw: some Collection<UInt8>) -> String? {
    row(ofName: raw).map { ImageParameter.table[$0].name }
  }

  /// Whether the query contains the parameter.
  func has(_ name: String) -> Bool { value(of: name) != nil }

  /// Returns the decoded value of a parameter; `nil` if the query does not contain it.
  func value(of name: String) -> String? { items.first { $0.parameter.name == name }?.value }

  /// Whether the client chooses what shapes the image: there is no preset, or a parameter besides
  /// the preset and its `format`.
  var isFreeForm: Bool {
    !has("preset") || items.contains { $0.parameter.shapesImage && $0.parameter.name != "format" }
  }

  /// The parameters that shape the image, by name, with those of a preset.
  var shaping: [String: String] {
    let shaping = items.filter { $0.parameter.shapesImage }
    return Dictionary(shaping.map { ($0.parameter.name, $0.value) }) { own, _ in own }
  }

  /// Returns the query with its own `w` and `h` rounded up. Values that are not allowed stay as
  /// they are.
  func rounded(to steps: SizeSteps) -> ImageQuery {
    guard !steps.isEmpty else { return self }
    func side(_ name: String) -> Int? {
      value(of: name).flatMap { ParameterText($0).whole(in: Sizing.sideRange) }
    }
    let sides = steps.rounded(width: side("w"), height: side("h"))
    let least = steps.rounded(width: side("min-w"), height: side("min-h"))
    var query = self
    for (name, side) in [
      ("w", sides.width), ("h", sides.height), ("min-w", least.width), ("min-h", least.height),
    ] {
      guard let side, let place = items.firstIndex(where: { $0.parameter.name == name }) else {
        continue
      }
      query.items[place] = Item(row: items[place].row, value: "\(side)")
    }
    return query
  }

  /// Returns the query with the parameters of its preset added. The query's own parameters take
  /// precedence.
  func withPreset(_ rules: RequestRules) -> ImageQuery {
    guard !rules.presets.isEmpty,
      let name = items.first(where: { $0.parameter.name == "preset" })?.value,
      let preset = rules.presets[name]
    else { return self }
    var query = self
    query.items += preset.items.filter { item in !items.contains { $0.row == item.row } }
    return query
  }

  /// Checks that the query uses only presets, if the rules require it.
  ///
  /// - Throws: `forbiddenParameter` for the first parameter that changes the image, or
  ///   `missingParameter` without a preset.
  func checkPresetsOnly(_ rules: RequestRules) throws(ImageError) {
    guard rules.presetsOnly else { return }
    let forbidden = items.first { $0.parameter.isBeyondPresets(rules) }
    if let forbidden { throw .forbiddenParameter(forbidden.parameter.name) }
    if !has("preset") { throw .missingParameter("preset") }
  }

  /// Checks for parameters that only presets, or only signed requests, may use.
  ///
  /// - Throws: `forbiddenParameter`, `unsignedParameter`.
  func checkAllowed(_ rules: RequestRules) throws(ImageError) {
    let enlarging = items.first { $0.parameter.enlarges($0.value, against: rules) }
    if let enlarging { throw .forbiddenParameter(enlarging.parameter.name) }
    let free = items.first {
      $0.parameter.name == "limitside" || $0.parameter.name.count == 1 && $0.value.hasSuffix("%")
    }
    // Sizes that no step bounds.
    if let free, !rules.sizeSteps.isEmpty, !rules.areVouched {
      throw .unsignedParameter(free.parameter.name, key: "server.size_steps")
    }
    for item in items { try item.parameter.checkAccess(value: item.value, rules: rules) }
  }

  /// Applies the parameters to a new draft.
  ///
  /// - Throws: `invalidParameter` for the first value that is not allowed.
  func draft(_ rules: RequestRules) throws(ImageError) -> ImageParameter.Draft {
    var draft = ImageParameter.Draft(rules: rules)
    for item in items where !item.parameter.apply(item.value, &draft) {
      let allowed = item.parameter.allowed(rules)
      throw .invalidParameter(
        name: item.parameter.name, value: displayable(item.value),
        allowed: allowed.text + NearestNames.question(allowed.nearest(to: item.value)))
    }
    return draft
  }
}
