// SecretText: a setting that may be a secret, and may be read from elsewhere.

/// A text, or a reference to it that is resolved when the server starts: `env:NAME`, `file:/path`.
public enum SecretText: Hashable, Sendable {
  /// The text itself.
  case literal(String)
  /// The value of an environment variable.
  case environment(String)
  /// The text of a file, without trailing line breaks.
  case file(String)

  /// Maximum size of a file with a secret, in bytes.
  private static let longestFile = 64 << 10

  /// Parses a setting by its prefix.
  public init(_ text: String) {
    if text.hasPrefix("env:") {
      self = .environment(String(text.dropFirst(4)))
    } else if text.hasPrefix("file:") {
      self = .file(String(text.dropFirst(5)))
    } else {
      self = .literal(text)
    }
  }

  /// Whether the text is a reference.
  public var isReference: Bool {
    if case .literal = self { false } else { true }
  }

  /// Whether a reference names a variable or an absolute path.
  var isWellFormed: Bool {
    switch self {
    case .literal: true
    case .environment(let name): !name.isEmpty && !name.contains("=")
    case .file(let path): path.hasPrefix("/") && !path.utf8.contains(0)
    }
  }

  /// The setting as written in a configuration; never the referenced text.
  public var text: String {
    switch self {
    case .literal(let text): text
    case .environment(let name): "env:" + name
    case .file(let path): "file:" + path
    }
  }

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
