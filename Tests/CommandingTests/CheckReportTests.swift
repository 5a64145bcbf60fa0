// CheckReportTests: what `pictor check` prints, and its exit status.

import Core
import FoundationEssentials
import Testing

@testable import Commanding

@Suite struct CheckReportTests {
  private let output = Lock("")

  private func report() -> CheckReport {
    var report = CheckReport()
    report.console = Console(
      output: { [output] text in output.withLock { $0 += text } }, errors: { _ in },
      columns: { nil })
    return report
  }

  @Test func `items are below their sections, with what is open in place of ok`() {
    var report = report()
    report.add(.size, "memory.budget", "5 MiB")
    report.add(.size, "disk.limit", "9 MiB", open: "too much", advice: "unused")
    report.add(.proxy, "k", "", advice: "think\u{1b}[2J")
    #expect(report.run(isJSON: false) == 1)
    #expect(
      output.withLock { $0 } == """
        Size it  docs/production.md#size-it
          ok      memory.budget  5 MiB
          open    disk.limit     9 MiB: too much

        Put it behind a proxy and a CDN  docs/production.md#put-it-behind-a-proxy-and-a-cdn
          advice  k              think\u{FFFD}[2J

        1 open of 3

        """)
  }

  @Test func `advice alone is success, and JSON has the same items`() throws {
    var report = report()
    report.add(.watch, "log.format", "text", advice: "json")
    report.add(.update, "--version", "1")
    #expect(report.run(isJSON: true) == 0)
    let items = try JSONDecoder().decode(
      [[String: String]].self, from: Data(output.withLock { $0 }.utf8))
    #expect(
      items == [
        [
          "state": "advice", "key": "log.format", "found": "text: json",
          "document": "docs/production.md#watch-it",
        ],
        [
          "state": "ok", "key": "--version", "found": "1",
          "document": "docs/production.md#update-it",
        ],
      ])
  }
}
