// VectorStyle: what styles and style sheets of an SVG refer to.

/// What a declaration block asks for that costs time.
struct VectorDeclarations {
  /// The targets of `url(#…)`, without gradients being told from others.
  var references: Set<VectorReference> = []
  /// Whether the element is drawn to a layer of its own first.
  var hasLayer = false
  /// The sum of `stroke-dasharray`; `nil` without one.
  var dashes: Double?
  /// The number of filter functions such as `blur(2px)`.
  var functions = 0

  var isEmpty: Bool { references.isEmpty && !hasLayer && dashes == nil && functions == 0 }

  /// The properties that may contain `url(#…)`, besides markers (SVG 2, Filter Effects and CSS Masking).
  private static let kinds: [String: VectorReference.Kind] = [
    "filter": .plain, "clip-path": .plain, "fill": .plain, "stroke": .plain, "mask": .mask,
    "marker": .vertices, "marker-mid": .vertices, "marker-start": .plain, "marker-end": .plain,
  ]

  init() {}

  /// Reads declarations such as `filter:url(#a);opacity:.5`, without comments.
  init(_ text: Substring) {
    for declaration in text.utf8.split(separator: UInt8(ascii: ";")) {
      guard let colon = declaration.firstIndex(of: UInt8(ascii: ":")) else { continue }
      let name = declaration[..<colon].filter { !VectorTag.isSpace($0) }
      add(String(decoding: name, as: UTF8.self), Substring(declaration[colon...].dropFirst()))
    }
  }

  /// Whether a property is one that costs time.
  static func counts(_ name: String) -> Bool {
    kinds[name] != nil
      || ["opacity", "mix-blend-mode", "isolation", "stroke-dasharray"].contains(name)
  }

  /// Adds a property, from an attribute or a declaration.
  mutating func add(_ name: String, _ value: Substring) {
    switch name {
    case "opacity":
      hasLayer = hasLayer || Self.numbers(value).first != 1
    case "mix-blend-mode", "isolation":
      let word = value.filter { !$0.isWhitespace }
      hasLayer = hasLayer || (word != "normal" && word != "auto")
    case "stroke-dasharray":
      let sum = Self.numbers(value).reduce(0, +)
      if sum > 0 { dashes = min(sum, dashes ?? sum) }
    default:
      guard let kind = Self.kinds[name] else { return }
      references.formUnion(VectorReference.all(in: value, kind))
      if name == "filter" {
        let names = value.split(separator: "(", omittingEmptySubsequences: false).dropLast()
        functions += names.count { !$0.hasSuffix("url") && !$0.hasSuffix("URL") }
      }
    }
  }

  /// Adds the declarations of another block.
  mutating func merge(_ other: VectorDeclarations) {
    references.formUnion(other.references)
    hasLayer = hasLayer || other.hasLayer
    functions += other.functions
    dashes = other.dashes ?? dashes
  }

  private static func numbers(_ value: Substring) -> [Double] {
    value.split { $0 == "," || $0.isWhitespace }
      .compactMap { Double($0.prefix { $0.isNumber || ".-+eE".contains($0) }) }
      .filter(\.isFinite)
  }
}

/// A reference of the form `url(#id)` or `#id`.
struct VectorReference: Hashable {
  /// How often and with what besides the target is drawn.
  enum Kind {
    case plain
    /// Costs layers besides the target.
    case mask
    /// Draws the target at each vertex.
    case vertices
  }

  /// `nil` if the reference is written in a way that this reader does not resolve.
  let id: String?
  var kind = Kind.plain

  /// Reads the value of `href`; `nil` for a reference to another document.
  init?(href value: VectorBytes) {
    guard let text = Self.decoded(value) else {
      id = nil
      return
    }
    let trimmed = text.drop(while: \.isWhitespace)
    guard trimmed.first == "#" else { return nil }
    id = String(trimmed.dropFirst().prefix { !$0.isWhitespace })
  }

  private init(id: String?, kind: Kind) {
    self.id = id
    self.kind = kind
  }

  /// Returns the references of the form `url(#…)`; one without an id for escapes of CSS.
  static func all(in value: Substring, _ kind: Kind) -> [VectorReference] {
    // The usual case.
    guard value.utf8.contains(UInt8(ascii: "(")) else { return [] }
    guard !value.utf8.contains(UInt8(ascii: "\\")) else {
      return [VectorReference(id: nil, kind: kind)]
    }
    var found: [VectorReference] = []
    var rest = value
    while let open = rest.firstIndex(of: "(") {
      let isLink = rest[..<open].suffix(3).lowercased() == "url"
      rest = rest[open...].dropFirst()
      guard isLink else { continue }
      rest = rest.drop { $0.isWhitespace || $0 == "'" || $0 == "\"" }
      guard rest.first == "#" else { continue }
      let id = rest.dropFirst().prefix { !$0.isWhitespace && !")'\"".contains($0) }
      found.append(VectorReference(id: String(id), kind: kind))
    }
    return found
  }

  /// Returns the text without character references; `nil` for one that contains entities of the document, which may stand
  /// for anything.
  static func decoded(_ value: VectorBytes) -> String? {
    let text = String(decoding: value, as: UTF8.self)
    guard value.contains(UInt8(ascii: "&")) else { return text }
    var result = ""
    var rest = text[...]
    while let ampersand = rest.firstIndex(of: "&") {
      result += rest[..<ampersand]
      let name = rest[ampersand...].dropFirst().prefix { $0 != ";" }
      guard let character = character(name) else { return nil }
      result.append(character)
      rest = rest[name.endIndex...].dropFirst()
    }
    return result + rest
  }

  /// Returns what a character reference, without `&` and `;`, stands for.
  private static func character(_ name: Substring) -> Character? {
    switch name {
    case "quot": return "\""
    case "apos": return "'"
    case "amp": return "&"
    case "lt": return "<"
    case "gt": return ">"
    default: break
    }
    guard name.first == "#" else { return nil }
    let digits = name.dropFirst()
    let code =
      digits.first == "x" ? UInt32(digits.dropFirst(), radix: 16) : UInt32(digits, radix: 10)
    return code.flatMap(Unicode.Scalar.init).map(Character.init)
  }
}
