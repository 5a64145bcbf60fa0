// ConfigurationError: everything that is wrong with a configuration, a line for each mistake.

/// Why a configuration cannot be used.
public struct ConfigurationError: Error, Hashable, Sendable, CustomStringConvertible {
  /// A line for each mistake, at least one: where, what, and what is allowed.
  public let problems: [String]

  /// The lines.
  public var description: String { problems.joined(separator: "\n") }

  /// A mistake at a place: a file, a file and key path, an environment variable, an option.
  public init(at place: String, _ problem: String) { problems = ["\(place): \(problem)"] }

  fileprivate init(_ problems: [String]) { self.problems = problems }
}

/// Collects mistakes, so that an operator is told all of them at once.
public struct ConfigurationProblems: Sendable {
  /// A line for each mistake found so far, in the order in which they were found.
  public private(set) var lines: [String] = []

  /// No mistakes.
  public init() {}

  /// Whether there are none.
  public var isEmpty: Bool { lines.isEmpty }

  /// Adds a mistake.
  public mutating func add(at place: String, _ problem: String) {
    add(ConfigurationError(at: place, problem))
  }

  /// Adds the mistakes of an error.
  public mutating func add(_ error: ConfigurationError) { lines += error.problems }

  /// Adds a mistake that has no place but the line itself.
  public mutating func add(line: String) { lines.append(line) }

  /// Runs a step and returns its value; `nil` where it throws, and then its mistakes are added.
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

  /// Throws all mistakes together, where there are any.
  public func check() throws(ConfigurationError) {
    guard lines.isEmpty else { throw ConfigurationError(lines) }
  }
}
