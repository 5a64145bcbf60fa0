// SessionNicenessTests: the base from which a worker's session is lowered.

import Testing

@testable import Sandboxing

struct SessionNicenessTests {
  @Test(arguments: [
    ("/autogroup-1 nice 0\n", 0), ("/autogroup-25 nice -15\n", -15), ("/autogroup-7 nice 19\n", 19),
  ])
  func `a session's niceness is read`(text: String, niceness: CInt) {
    #expect(SessionNiceness.niceness(ofGroup: text) == niceness)
  }

  @Test(arguments: ["", "\n", "/autogroup-25 nice\n"])
  func `a process without a session has none`(text: String) {
    #expect(SessionNiceness.niceness(ofGroup: text) == nil)
  }
}
