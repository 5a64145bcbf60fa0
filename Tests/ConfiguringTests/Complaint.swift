// Complaint: the expected errors of invalid settings.

@testable import Core

/// The error as people read it, or `nothing`.
func complaint(_ body: () throws -> Void) -> String {
  do {
    try body()
    return "nothing"
  } catch {
    return "\(error)"
  }
}

extension Configuration {
  /// Applies variables, and throws all mistakes. Returns the names of unknown ones.
  mutating func apply(environment: [String: String]) throws -> [String] {
    var problems = ConfigurationProblems()
    let unknown = apply(environment: environment, &problems)
    try problems.check()
    return unknown
  }
}
