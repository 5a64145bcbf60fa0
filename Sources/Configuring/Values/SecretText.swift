// SecretText: a setting that may be a secret, and so may stand somewhere else.

/// A text, or where it is to be read from when the server starts: `env:NAME`, `file:/path`.
public enum SecretText: Hashable, Sendable {
  /// The text itself.
  case literal(String)
  /// The value of an environment variable.
  case environment(String)
  /// The text of a file, without line breaks at its end.
  case file(String)

  /// Most bytes of a file with a secret.
  private static let longestFile = 64 << 10

  /// Tells the three by how they begin.
  public init(_ text: String) {
    if text.hasPrefix("env:") {
      self = .environment(String(text.dropFirst(4)))
    } else if text.hasPrefix("file:") {
      self = .file(String(text.dropFirst(5)))
    } else {
      self = .literal(text)
    }
  }

  /// Whether the text stands elsewhere.
  public var isReference: Bool {
    if case .literal = self { false } else { true }
  }

  /// Whether a variable or a file is named where it says so.
  var isWellFormed: Bool {
    switch self {
    case .literal: true
    case .environment(let name): !name.isEmpty && !name.contains("=")
    case .file(let path): path.hasPrefix("/") && !path.utf8.contains(0)
    }
  }

  /// As it is written in a configuration: never what it refers to.
  public var text: String {
    switch self {
    case .literal(let text): text
    case .environment(let name): "env:" + name
    case .file(let path): "file:" + path
    }
  }

  /// The text, read from where it stands.
  ///
  /// - Throws: `ConfigurationError` at `place` where it is missing or empty; it never repeats a secret.
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
    // By bytes: a carriage return and a line feed are one Character.
    let end = value.utf8.lastIndex { $0 != 0x0a && $0 != 0x0d }
    guard let end else { throw ConfigurationError(at: place, "\(text) is empty") }
    return String(value[...end])
  }
}
