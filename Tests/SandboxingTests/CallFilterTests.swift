// CallFilterTests: the lists of the filter and of Landlock's rules.

import CSandbox
import Core
import Glibc
import Testing

@testable import Sandboxing

struct CallFilterTests {
  @Test func `libseccomp knows every name, and no name is there twice`() {
    let unconditional = CallFilter.unconditional
    let conditional = Set(CallFilter.conditional(connection: 3, process: 1).map(\.name))
    for name in unconditional + conditional + CallFilter.missing {
      #expect(pictor_sandbox_is_call(seccomp_syscall_resolve_name(name)) != 0, "\(name)")
    }
    #expect(Set(unconditional).count == unconditional.count)
    #expect(conditional.isDisjoint(with: unconditional))
    #expect(conditional.isDisjoint(with: CallFilter.missing))
  }

  @Test(arguments: [
    (1, 0x1fff, 0, 0), (2, 0x3fff, 0, 0), (3, 0x7fff, 0, 0), (4, 0x7fff, 3, 0), (5, 0xffff, 3, 0),
    (6, 0xffff, 3, 3), (7, 0xffff, 3, 3),
  ])
  func `a version of Landlock refuses all that it knows`(
    version: Int, files: UInt64, network: UInt64, scopes: UInt64
  ) {
    let rights = FileRules.Rights(version: version)
    #expect((rights.files, rights.network, rights.scopes) == (files, network, scopes))
  }
}
