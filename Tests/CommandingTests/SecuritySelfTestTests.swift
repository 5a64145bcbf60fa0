// SecuritySelfTestTests: the table and the exit status of `pictor selftest security`.

import Core
import Testing

@testable import Commanding

@Suite struct SecuritySelfTestTests {
  private let printed = Printed()

  private func run(open: Set<String>) -> CInt {
    let cases = [
      SecurityCase(kind: "loopback", source: "http://127.0.0.1/", isRedirect: false),
      SecurityCase(kind: "redirect", source: "http://10.0.0.1/", isRedirect: true),
    ]
    var test = SecuritySelfTest(cases) { test in
      open.contains(test.source)
        ? (true, "would connect to x") : (false, "refused: forbidden_source")
    }
    test.console = printed.console()
    #expect(test.openSources().count == open.count)
    return test.run()
  }

  @Test func `if all cases are refused, the status is 0 and each has a row`() {
    #expect(run(open: []) == 0)
    #expect(
      printed.output == """
        ok   kind      case                          expected  got
        yes  loopback  http://127.0.0.1/             refused   refused: forbidden_source
        yes  redirect  redirect to http://10.0.0.1/  refused   refused: forbidden_source
        2 of 2 refused

        """)
    #expect(printed.errors.isEmpty)
  }

  @Test func `an open case has its row marked, and the status is 1`() {
    #expect(run(open: ["http://10.0.0.1/"]) == 1)
    let lines = printed.output.split(separator: "\n")
    #expect(lines.count { $0.hasPrefix("NO ") } == 1)
    #expect(lines.contains { $0.hasPrefix("NO ") && $0.hasSuffix("would connect to x") })
    #expect(lines.last == "1 of 2 refused")
    #expect(printed.errors == "pictor: 1 of 2 sources are open: see the rows with NO\n")
  }

  @Test func `the list has each kind of attack, and this server at its port`() {
    let all = SecurityCase.all(ownPort: 8_080, hostName: "me")
    #expect(Set(all).count == all.count)
    let kinds = Set(all.map(\.kind))
    #expect(
      kinds == [
        "loopback", "private", "cloud", "embedded", "name", "user", "scheme", "port", "file", "own",
        "redirect",
      ])
    #expect(all.contains { $0.source == "http://127.0.0.1:8080/stats" })
    #expect(all.contains { $0.source == "http://me/a.jpg" })
    #expect(!SecurityCase.all(ownPort: 0, hostName: "").contains { $0.kind == "own" })
  }
}
