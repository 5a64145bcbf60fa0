// MetricsTests: tests counters, histograms and request identifiers.

import TestSupport
import Testing

@testable import Core

struct MetricsTests {
  @Test func `a counter adds up increments from concurrent tasks`() async {
    let counter = Counter()
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<10 { group.addTask { for _ in 0..<1_000 { counter.add() } } }
    }
    #expect(counter.value == 10_000)
  }

  @Test func `quantiles are accurate within an eighth`() {
    let histogram = LatencyHistogram()
    for value in 1...1_000 { histogram.record(.milliseconds(value)) }
    let figures = histogram.figures
    #expect(figures.count == 1_000)
    #expect(abs(figures.sumSeconds - 500.5) < 0.001)
    for (quantile, exact) in [(figures.p50, 500.0), (figures.p95, 950), (figures.p99, 990)] {
      #expect(quantile >= exact && quantile <= exact * 1.13)
    }
  }

  @Test func `an empty histogram and extreme values are handled`() {
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

  @Test func `one request id tells neither the next one nor a common part of the process`() throws {
    let ids = try (0..<256).map { _ in try #require(UInt64(RequestID().description, radix: 16)) }
    // Consecutive ids differ in half of their bits. Fewer than 8 have a chance below 10^-9.
    for (first, second) in zip(ids, ids.dropFirst()) {
      #expect((first ^ second).nonzeroBitCount >= 8 && second != first &+ 1)
    }
    // No bit is the same in all of them.
    #expect(ids.reduce(.max, &) == 0 && ids.reduce(0, |) == .max)
  }

  @Test func `the cipher of request ids matches its published test vector`() {
    // Beaulieu et al., 2013, appendix C: Speck64/128.
    let cipher = BlockCipher(key: [0x0302_0100, 0x0b0a_0908, 0x1312_1110, 0x1b1a_1918])
    #expect(cipher.encrypt(0x3b72_6574_7475_432d) == 0x8c6f_a548_454e_028b)
  }

  @Test(arguments: [
    (Duration.microseconds(1), "0.001"), (.milliseconds(12), "12.000"), (.zero, "0.000"),
    (.seconds(61) + .microseconds(45), "61000.045"),
  ])
  func `milliseconds have three decimals`(duration: Duration, text: String) {
    #expect(duration.millisecondsText == text)
  }
}
