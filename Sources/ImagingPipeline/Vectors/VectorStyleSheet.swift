// VectorStyleSheet: the rules of an SVG's style sheets, and the elements that they match.

/// The rules of an SVG's style sheets, by the class, the id or the name of the elements that they match.
///
/// Only the last compound selector counts, and of it one part, so a rule may match more elements here than it does.
struct VectorStyleSheet {
  /// The declarations of each rule.
  private(set) var rules: [VectorDeclarations] = []
  /// The rules of each key; those of the first key match every element.
  private(set) var rulesOfKeys: [[Int]] = [[]]
  private var keys: [String: Int] = [:]
  /// Whether the sheet imports a style sheet that the document contains.
  private(set) var hasImports = false

  var isEmpty: Bool { rules.isEmpty }

  /// Adds the rules of a style sheet without comments (`VectorStyleText`).
  mutating func add(_ text: String) {
    var selectors = text.utf8[...]
    var rest = text.utf8[...]
    var isOpen = false
    while true {
      let end = rest.firstIndex { $0 == UInt8(ascii: "{") || $0 == UInt8(ascii: "}") }
      let part = rest[..<(end ?? rest.endIndex)]
      if isOpen {
        add(Substring(part), for: Substring(selectors))
      } else if end.map({ text.utf8[$0] }) != UInt8(ascii: "{") {
        // What is behind an inner block may belong to any element.
        add(Substring(part), for: "*")
      }
      noteImports(Substring(part))
      guard let end else { return }
      isOpen = text.utf8[end] == UInt8(ascii: "{")
      selectors = part
      rest = rest[end...].dropFirst()
    }
  }

  /// Returns the keys with rules for an element.
  func matchingKeys(name: String, id: String?, classes: Set<String>) -> [Int] {
    let found = [keys[" " + name], id.flatMap { keys["#" + $0] }].compactMap { $0 }
    return [0] + found + classes.compactMap { keys["." + $0] }
  }

  private mutating func noteImports(_ part: Substring) {
    guard let sign = part.firstIndex(of: "@") else { return }
    let text = part[sign...].lowercased()
    hasImports =
      hasImports || text.contains("\\") || (text.contains("@import") && text.contains("data:"))
  }

  private mutating func add(_ text: Substring, for selectors: Substring) {
    let declarations = VectorDeclarations(text)
    guard !declarations.isEmpty else { return }
    rules.append(declarations)
    var found: Set<Int> = []
    for selector in selectors.split(separator: ",") { found.insert(key(of: selector)) }
    for key in found { rulesOfKeys[key].append(rules.count - 1) }
  }

  private mutating func key(of selector: Substring) -> Int {
    let compound = selector.split { $0.isWhitespace || ">+~;".contains($0) }.last ?? ""
    let isPlain = compound.allSatisfy { $0.isLetter || $0.isNumber || "-_.#".contains($0) }
    let parts = compound.split { ".#".contains($0) }
    guard isPlain, let part = parts.last else { return 0 }
    // The sign before the part tells a class or an id from a name.
    let sign =
      part.startIndex > compound.startIndex
      ? compound[compound.index(before: part.startIndex)] : " "
    let name = "\(sign)\(part)"
    if let key = keys[name] { return key }
    keys[name] = rulesOfKeys.count
    rulesOfKeys.append([])
    return rulesOfKeys.count - 1
  }
}
