// SecretText+Value: reads the text that a reference names.

import Model

extension SecretText {
  /// Maximum size of a file with a secret, in bytes.
  private static let longestFile = 64 << 10

  /// Returns the text, or the text that the reference names.
  ///
  /// - Throws: `ConfigurationError` at `place` if the text is missing or empty. The message never
  ///   contains a secret.
  public func value(
    environment: [String: String], at place: String
  ) throws(ConfigurationError) -> String {
    let value: String
    switch self {
    case .literal(let text): return text
    case .environment(let name):
      guard let found = environment[name] else {
        throw ConfigurationError(at: place, "the environment variable \(name) is not set")
      }
      value = found
    case .file(let path):
      do throws(FileProblem) {
        value = try textOfFile(path, limit: Self.longestFile)
      } catch {
        throw ConfigurationError(at: place, "'\(path)' \(error.description)")
      }
    }
    // By bytes, because CR LF is a single `Character`.
    let end = value.utf8.lastIndex { $0 != 0x0a && $0 != 0x0d }
    guard let end else { throw ConfigurationError(at: place, "\(text) is empty") }
    return String(value[...end])
  }
}
