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
    let root = "{ \(strict)  \"$schema\": { \"type\": \"string\" },\n"
    let text = nested(
      open: { name in name.isEmpty ? root : "\"\(name)\": { " + strict }, close: "} },\n",
      row: { key, name, indent in
        "\(indent)\"\(name)\": { \(key.schema), \"description\": \(JSON5.quoted(key.purpose)) },\n"
      })
    // JSON has no comma before a closing brace.
    return text.replacing(/,(\n *\})/) { $0.1 }
  }
}
