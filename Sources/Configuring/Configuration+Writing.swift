// Configuration+Writing: the configuration as a file, made from the table of keys.

extension Configuration {
  /// The configuration as a JSON5 file with the purpose of each key. `apply(json5:file:)` can read
  /// it.
  public var json5: String {
    Self.nested(
      open: { name in name.isEmpty ? "{\n" : "\(name): {\n" }, close: "},\n",
      row: { key, name, indent in
        "\(indent)// \(key.purpose)\n\(indent)\(name): \(key.write(self)),\n"
      })
  }

  /// Returns a text with a part for each section, one in the other, and a row for each key.
  static func nested(
    open: (String) -> String, close: String,
    row: (ConfigurationKey, _ name: Substring, _ indent: String) -> String
  ) -> String {
    var text = open("")
    var sections: [Substring] = []
    func indent() -> String { String(repeating: "  ", count: sections.count + 1) }
    for key in keys {
      let parts = key.path.split(separator: ".")
      let common = zip(sections, parts.dropLast()).prefix { $0 == $1 }.count
      while sections.count > common {
        sections.removeLast()
        text += indent() + close
      }
      for section in parts.dropLast().dropFirst(common) {
        text += indent() + open(String(section))
        sections.append(section)
      }
      text += row(key, parts[parts.count - 1], indent())
    }
    while sections.popLast() != nil { text += indent() + close }
    return text + close.replacing(",", with: "")
  }
}
