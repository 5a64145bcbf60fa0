// SystemNamesTests: tests of the system's resolver.

import Testing

@testable import Downloading

@Suite struct SystemNamesTests {
  /// The text is this program's own: a resolver was not asked.
  @Test(arguments: ["invalid", "a.invalid", "a.b.Invalid", "a.invalid."])
  func `a name below invalid does not exist, whatever the resolver does`(name: String) {
    #expect(SystemNames.addresses(of: name) == .failure(.unknown("invalid is not a domain")))
  }
}
