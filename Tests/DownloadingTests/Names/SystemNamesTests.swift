// SystemNamesTests: tests of the system's resolver.

import Glibc
import Testing

@testable import Downloading

@Suite(.onOwnThreads) struct SystemNamesTests {
  @Test func `this machine's name has its addresses, each once`() throws {
    let own = try SystemNames.addresses(of: "localhost").get()
    #expect(own.contains(.v4(0x7f00_0001)) || own.contains(.v6(high: 0, low: 1)))
    #expect(Set(own).count == own.count)
  }

  @Test func `text that the resolver refuses to look up is no name`() throws {
    guard case .failure(.unknown) = SystemNames.addresses(of: "no name") else {
      Issue.record("\(SystemNames.addresses(of: "no name"))")
      return
    }
  }

  @Test func `only a definite answer of the resolver means that there is no such name`() {
    // Given: -5 and -9 are EAI_NODATA and EAI_ADDRFAMILY
    for status in [EAI_NONAME, -5, -9] {
      let text = String(cString: gai_strerror(status))
      #expect(SystemNames.failure(of: status, errno: EMFILE) == .unknown(text))
    }
    for status in [EAI_AGAIN, EAI_FAIL, EAI_MEMORY, EAI_FAMILY, EAI_SERVICE, EAI_OVERFLOW, -99] {
      let text = String(cString: gai_strerror(status))
      #expect(SystemNames.failure(of: status, errno: EMFILE) == .temporary(text))
    }
  }

  @Test func `an error of the system is told by its own text`() {
    let text = String(cString: strerror(EMFILE))
    guard case .temporary(let reason) = SystemNames.failure(of: EAI_SYSTEM, errno: EMFILE) else {
      Issue.record("not temporary")
      return
    }
    #expect(reason.contains(text))
  }

  /// The text is this program's own: a resolver was not asked.
  @Test(arguments: ["invalid", "a.invalid", "a.b.Invalid", "a.invalid."])
  func `a name below invalid does not exist, whatever the resolver does`(name: String) {
    #expect(SystemNames.addresses(of: name) == .failure(.unknown("invalid is not a domain")))
  }
}
