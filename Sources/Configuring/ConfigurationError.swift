// ConfigurationError: the mistakes in a configuration.

/// Why a configuration cannot be used.
public struct ConfigurationError: Error, Hashable, Sendable, CustomStringConvertible {
  /// A line for each mistake, at least one: where, what, and what is allowed.
  public let problems: [String]

  /// All lines, joined by line breaks.
  public var description: String { problems.joined(separator: "\n") }

  /// Creates an error with one mistake. The place is a file, a file and a key path, an environment
  /// variable or an option.
  public init(at place: String, _ problem: String) { problems = ["\(place): \(problem)"] }

  fileprivate init(_ problems: [String]) { self.problems = problems }
}

/// Collects mistakes, so that an operator sees all of them at once.
public struct ConfigurationProblems: Sendable {
  /// A line for each mistake, in the order in which they were found.
  public private(set) var lines: [String] = []

  /// Creates an empty collection.
  public init() {}

  /// Whether no mistake was found.
  public var isEmpty: Bool { lines.isEmpty }

  /// Adds a mistake.
  public mutating func add(at place: String, _ problem: String) {
    add(ConfigurationError(at: place, problem))
  }

  /// Adds the mistakes of an error.
  public mutating func add(_ error: ConfigurationError) { lines += error.problems }

  /// Adds a complete line.
  public mutating func add(line: String) { lines.append(line) }

  /// Runs a step and returns its value. If the step throws, adds its mistakes and returns `nil`.
  @discardableResult public mutating func collect<Value>(
    _ step: () throws(ConfigurationError) -> Value
  ) -> Value? {
    do throws(ConfigurationError) {
      return try step()
    } catch {
      add(error)
      return nil
    }
  }

  /// Throws all mistakes together, if any was found.
  public func check() throws(ConfigurationError) {
    guard lines.isEmpty else { throw ConfigurationError(lines) }
  }
}
