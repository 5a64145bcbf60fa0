// MetricsTests: tests counters, histograms and request identifiers.

import Testing

@testable import Telemetry

struct MetricsTests {
  @Test func `counters add up over tasks`() async {
    let counter = Counter()
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<10 { group.addTask { for _ in 0..<1_000 { counter.add() } } }
    }
    #expect(counter.value == 10_000)
  }

  @Test func `quantiles are right within an eighth`() {
    let histogram = LatencyHistogram()
    for value in 1...1_000 { histogram.record(.milliseconds(value)) }
    let figures = histogram.figures
    #expect(figures.count == 1_000)
    #expect(abs(figures.sumSeconds - 500.5) < 0.001)
    for (quantile, exact) in [(figures.p50, 500.0), (figures.p95, 950), (figures.p99, 990)] {
      #expect(quantile >= exact && quantile <= exact * 1.13)
    }
  }

  @Test func `an empty histogram and extreme values are no trouble`() {
    let histogram = LatencyHistogram()
    #expect(histogram.figures.p99 == 0)
    histogram.record(.zero)
    histogram.record(.seconds(-1))
    histogram.record(.seconds(1_000_000))
    #expect(histogram.figures.count == 3)
  }

  @Test func `request ids are unique and have one length`() {
    let ids = (0..<1_000).map { _ in RequestID().description }
    #expect(Set(ids).count == 1_000)
    #expect(ids.allSatisfy { $0.utf8.count == RequestID.ownLength })
  }

  @Test(arguments: [
    (Duration.microseconds(1), "0.001"), (.milliseconds(12), "12.000"), (.zero, "0.000"),
    (.seconds(61) + .microseconds(45), "61000.045"),
  ])
  func `milliseconds have three decimals`(duration: Duration, text: String) {
    #expect(duration.millisecondsText == text)
  }
}
