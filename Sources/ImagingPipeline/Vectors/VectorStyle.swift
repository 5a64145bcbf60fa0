// VectorStyle: what styles and style sheets of an SVG refer to.

/// What a declaration block asks for that costs time.
struct VectorDeclarations {
  /// The targets of `url(#…)`, without gradients being told from others.
  var references: [VectorReference] = []
  /// Whether the element is drawn to a layer of its own first.
  var hasLayer = false
  /// The sum of `stroke-dasharray`; `nil` without one.
  var dashes: Double?

  var isEmpty: Bool { references.isEmpty && !hasLayer && dashes == nil }

  init() {}

  /// Reads declarations such as `filter:url(#a);opacity:.5`.
  init(_ text: VectorBytes) {
    for declaration in text.split(separator: UInt8(ascii: ";")) {
      guard let colon = declaration.firstIndex(of: UInt8(ascii: ":")) else { continue }
      let name = declaration[..<colon].filter { !VectorTag.isSpace($0) }
      add(String(decoding: name, as: UTF8.self), declaration[colon...].dropFirst())
    }
  }

  /// Adds a property, from an attribute or a declaration.
  mutating func add(_ name: String, _ value: VectorBytes) {
    switch name {
    case "opacity":
      hasLayer = hasLayer || Self.numbers(value).first != 1
    case "mix-blend-mode", "isolation":
      hasLayer = true
    case "stroke-dasharray":
      let sum = Self.numbers(value).reduce(0, +)
      if sum > 0 { dashes = sum }
    default:
      references += VectorReference.all(in: value, isMask: name == "mask")
    }
  }

  /// Adds the declarations of a matching rule.
  mutating func add(_ other: VectorDeclarations) {
    references += other.references
    hasLayer = hasLayer || other.hasLayer
    dashes = dashes ?? other.dashes
  }

  private static func numbers(_ value: VectorBytes) -> [Double] {
    String(decoding: value.prefix(256), as: UTF8.self)
      .split { $0 == " " || $0 == "," || $0.isNewline || $0 == "\t" }
      .compactMap { Double($0.prefix { $0.isNumber || ".-+eE".contains($0) }) }
      .filter(\.isFinite)
  }
}

/// A reference of the form `url(#id)` or `#id`.
struct VectorReference: Hashable {
  /// `nil` if the reference is written in a way that this reader does not resolve.
  let id: String?
  /// Whether the property is `mask`, which costs layers besides the target.
  var isMask = false

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

  /// Returns the value of an `id`; `nil` if it contains entities of the document.
  static func text(of value: VectorBytes) -> String? { decoded(value) }

  private init(id: String?, isMask: Bool) {
    self.id = id
    self.isMask = isMask
  }

  /// Returns the references of the form `url(#…)`.
  static func all(in value: VectorBytes, isMask: Bool = false) -> [VectorReference] {
    // The usual case, without a string.
    guard value.contains(UInt8(ascii: "(")) else { return [] }
    guard let text = decoded(value) else { return [VectorReference(id: nil, isMask: isMask)] }
    var found: [VectorReference] = []
    var rest = text[...]
    while let range = rest.firstRange(of: "url(") {
      rest = rest[range.upperBound...].drop { $0.isWhitespace || $0 == "'" || $0 == "\"" }
      guard rest.first == "#" else { continue }
      let id = rest.dropFirst().prefix { !$0.isWhitespace && !")'\"".contains($0) }
      found.append(VectorReference(id: String(id), isMask: isMask))
    }
    return found
  }

  /// Returns the text without character references; `nil` for one that contains escapes of CSS or entities of the
  /// document, which may stand for anything.
  ///
  /// - Parameter limit: The most bytes that are read. References are shorter.
  static func decoded(_ value: VectorBytes, upTo limit: Int = 65_536) -> String? {
    guard !value.contains(UInt8(ascii: "\\")) else { return nil }
    let text = String(decoding: value.prefix(limit), as: UTF8.self)
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

/// The rules of an SVG's style sheets, by the class, the id or the name of the elements that they match.
///
/// Only the last compound selector counts, and of it one part, so a rule may match more elements here than it does.
struct VectorStyleSheet {
  private var rules: [String: VectorDeclarations] = [:]
  /// The rules for every element.
  private(set) var everywhere = VectorDeclarations()

  var isEmpty: Bool { rules.isEmpty && everywhere.isEmpty }

  /// Adds the rules of a style sheet.
  mutating func add(_ text: VectorBytes) {
    var rest = text
    while let brace = rest.firstIndex(where: { $0 == UInt8(ascii: "{") || $0 == UInt8(ascii: "}") })
    {
      let selectors = rest[..<brace]
      rest = rest[brace...].dropFirst()
      // Whatever is misread counts for every element.
      everywhere.references += VectorReference.all(in: selectors)
      guard text[brace] == UInt8(ascii: "{") else { continue }
      let end = rest.firstIndex { $0 == UInt8(ascii: "{") || $0 == UInt8(ascii: "}") }
      guard let end, text[end] == UInt8(ascii: "}") else { continue }
      let declarations = VectorDeclarations(rest[..<end])
      rest = rest[end...].dropFirst()
      guard !declarations.isEmpty else { continue }
      for selector in selectors.split(separator: UInt8(ascii: ",")) {
        add(declarations, for: String(decoding: selector, as: UTF8.self))
      }
    }
    everywhere.references += VectorReference.all(in: rest)
  }

  private mutating func add(_ declarations: VectorDeclarations, for selector: String) {
    let compound = selector.split { $0.isWhitespace || ">+~".contains($0) }.last ?? ""
    let isPlain = compound.allSatisfy {
      $0.isLetter || $0.isNumber || "-_.#".contains($0)
    }
    let parts = compound.split { ".#".contains($0) }
    guard isPlain, let part = parts.last else { return everywhere.add(declarations) }
    // The sign before the part tells a class or an id from a name.
    let sign =
      part.startIndex > compound.startIndex
      ? compound[compound.index(before: part.startIndex)] : " "
    rules["\(sign)\(part)", default: VectorDeclarations()].add(declarations)
  }

  /// Returns the declarations for an element.
  func declarations(name: String, id: String?, classes: [String]) -> VectorDeclarations {
    var result = everywhere
    for key in [" " + name] + (id.map { ["#" + $0] } ?? []) + classes.map({ "." + $0 }) {
      if let found = rules[key] { result.add(found) }
    }
    return result
  }
}
