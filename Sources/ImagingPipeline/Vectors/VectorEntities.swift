// VectorEntities: finds what a document type declaration of an SVG adds to its elements.

/// The internal subset of a document type declaration (XML 1.0, 2.8).
enum VectorEntities {
  /// Returns what the declaration may add to elements that the reader does not see; `nil` for plain texts, such as the names
  /// of namespaces.
  static func fault(of declaration: String) -> String? {
    var isEntity = false
    for part in declaration.split(separator: "<").dropFirst() {
      if part.hasPrefix("!ENTITY") {
        isEntity = true
        let name = part.dropFirst(7).drop(while: \.isWhitespace)
        guard name.first != "%" else { return "an entity that declares others" }
        guard !part.contains("("), !part.contains("&#") else { return "an entity with references" }
      } else if part.hasPrefix("!ATTLIST"), !isPlain(part) {
        return "attributes in a document type declaration"
      } else if isEntity, part.first != "!", part.first != "?" {
        // Any other `<` is within the value of an entity.
        return "an entity that contains elements"
      }
    }
    return nil
  }

  /// Whether attributes have no default but one for the name of a namespace.
  private static func isPlain(_ attributes: Substring) -> Bool {
    let quotes = attributes.count { $0 == "\"" || $0 == "'" }
    return quotes == 0 || (quotes == 2 && attributes.contains("xmlns"))
  }
}
