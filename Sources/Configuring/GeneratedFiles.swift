// GeneratedFiles: the files and texts that are made from the table of keys.

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

  /// The rows of docs/configuration.md.
  static var documentRows: String {
    keys.map { key in
      """
      | `\(key.path)`\(key.isLive ? " ⟳" : "") | `\(key.environmentVariable)` | \
      `\(key.write(Configuration()))` | \(key.purpose) |\n
      """
    }.joined()
  }

  /// The JSON Schema (draft 2020-12) of a configuration file.
  static var schema: String {
    let strict = "\"type\": \"object\", \"additionalProperties\": false, \"properties\": {\n"
    let text = nested(
      open: { name in (name.isEmpty ? "{ " : "\"\(name)\": { ") + strict }, close: "} },\n",
      row: { key, name, indent in
        "\(indent)\"\(name)\": { \(key.schema), \"description\": \(JSON5.quoted(key.purpose)) },\n"
      })
    // JSON has no comma before a closing brace.
    return text.replacing(/,(\n *\})/) { $0.1 }
  }

  /// The completion of bash.
  static var completion: String {
    let commands = Invocation.Command.allCases.map(\.rawValue).joined(separator: " ")
    let options = ["--config", "--check-config", "--print-config", "--version", "--help"]
    return """
      # Completion of pictor for bash, made from its table of keys: source it, or copy it to
      # /usr/share/bash-completion/completions/pictor.
      _pictor() {
        local word=${COMP_WORDS[COMP_CWORD]} words="help \(commands)"
        [[ ${COMP_WORDS[COMP_CWORD - 1]} == --config ]] && { COMPREPLY=($(compgen -f -- "$word")); return; }
        [[ $word == -* ]] && words="
      \((options + paths.map { "--" + $0 }).joined(separator: "\n"))"
        COMPREPLY=($(compgen -W "$words" -- "$word"))
      }
      complete -o default -F _pictor pictor

      """
  }

  /// Returns a text with a part for each section, one in the other, and a row for each key.
  private static func nested(
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
