// GeneratedFiles: the files of the repository that are made from the table of keys.

@testable import Core

extension Configuration {
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
}
