// SecretText: a setting that may be a secret, and may be read from elsewhere.

/// A text, or a reference to it that is resolved when the server starts: `env:NAME`, `file:/path`.
public enum SecretText: Hashable, Sendable {
  /// The text itself.
  case literal(String)
  /// The value of an environment variable.
  case environment(String)
  /// The text of a file, without trailing line breaks.
  case file(String)

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
  public var isWellFormed: Bool {
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
}
