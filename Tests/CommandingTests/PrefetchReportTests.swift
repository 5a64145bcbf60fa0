// PrefetchReportTests: the texts about a prefetch.

import Core
import TestSupport
import Testing

@testable import Commanding

@Suite(.onOwnThreads) struct PrefetchReportTests {
  private func status(_ change: (inout PrefetchStatus) -> Void) -> PrefetchStatus {
    var status = PrefetchStatus(id: "x", total: 200)
    change(&status)
    return status
  }

  @Test func `the bar shows the finished share`() {
    let half = status { status in
      status.finished = 60
      status.skipped = 38
      status.failed = 2
      status.rate = 12.34
      status.secondsLeft = 8.1
    }
    #expect(
      PrefetchReport.progress(half, width: 80)
        == "[##############...............] 100/200, 38 skipped, 2 failed, 12.3/s, 0:09 left")
    #expect(
      PrefetchReport.progress(status { _ in }, width: 80)
        == "[" + String(repeating: ".", count: 40) + "] 0/200, 0.0/s")
    #expect(
      PrefetchReport.progress(status { $0.finished = 200 }, width: 30)
        == "[#############] 200/200, 0.0/s")
  }

  @Test(arguments: 0...200)
  func `the progress text never exceeds the given columns`(width: Int) {
    let busy = status { status in
      status.finished = 1
      status.skipped = 100_000
      status.failed = 99_999
      status.total = 1_000_000
      status.rate = 123_456.7
      status.secondsLeft = 86_399
    }
    #expect(PrefetchReport.progress(busy, width: width).count <= width)
  }

  @Test func `an empty list shows a full bar`() {
    var empty = PrefetchStatus(id: "x", total: 0)
    empty.state = .finished
    #expect(PrefetchReport.progress(empty, width: 20) == "[#######] 0/0, 0.0/s")
  }

  @Test(arguments: [
    (0.0, "0:00"), (0.2, "0:01"), (59.9, "1:00"), (3_599, "59:59"), (3_723, "1:02:03"),
    (1e12, "99:59:59"), (-1, "0:00"),
  ])
  func `the remaining time is formatted as a clock`(seconds: Double, text: String) {
    #expect(PrefetchReport.clock(seconds) == text)
  }

  @Test func `the summary lists reasons by frequency, then each failure`() {
    let ended = status { status in
      status.state = .finished
      status.seconds = 3.25
      status.finished = 150
      status.skipped = 45
      status.failed = 5
      status.reasons = ["undecodable": 1, "source_not_found": 3, "missing_parameter": 1]
      status.failures = [
        .init(line: 9, code: "missing_parameter", message: "evil \u{1B}[2J words"),
        .init(line: 7, code: "undecodable", message: "the source cannot be decoded as an image"),
      ]
    }
    #expect(
      PrefetchReport.summary(ended) == """
        finished after 3.3 s: 200 images, 150 loaded, 45 skipped, 5 failed
        failed: 3 source_not_found
        failed: 1 missing_parameter
        failed: 1 undecodable
        line 7: undecodable: the source cannot be decoded as an image
        line 9: missing_parameter: evil \u{FFFD}[2J words
        and 3 more failures

        """)
  }

  @Test func `the summary of a cancelled prefetch counts the images that were not tried`() {
    let ended = status {
      $0.state = .cancelled
      $0.finished = 1
    }
    #expect(
      PrefetchReport.summary(ended) == """
        cancelled after 0.0 s: 200 images, 1 loaded, 0 skipped, 0 failed
        not tried: 199

        """)
  }

  @Test(arguments: ["\u{7}", "\u{9B}", "\u{202E}", "\u{2066}", "\u{2028}", "\u{2029}", "\u{FEFF}"])
  func `control and bidirectional characters are replaced`(text: String) {
    #expect(PrefetchReport.printable("a\(text)b é 東") == "a\u{FFFD}b é 東")
  }

  @Test func `extreme numbers of another program are shown`() {
    let extreme = status { status in
      status.total = .max
      status.finished = .min
      status.skipped = -1
      status.failed = .min
    }
    #expect(PrefetchReport.summary(extreme).contains("not tried"))
    #expect(PrefetchReport.progress(extreme, width: 200).hasPrefix("["))
  }
}
