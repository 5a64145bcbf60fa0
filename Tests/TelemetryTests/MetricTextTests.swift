// MetricTextTests: the text of /metrics has Prometheus's format, and reads back.

import TestSupport
import Testing

@testable import Core

struct MetricTextTests {
  private func text(
    as format: MetricText.Format = .prometheus, _ add: (inout Figures) -> Void
  ) -> String {
    var figures = Figures()
    add(&figures)
    return String(decoding: MetricText.bytes(of: figures, as: format), as: UTF8.self)
  }

  @Test func `help and type come once, in front of the samples`() {
    let text = text {
      $0.add("a", 1, "pictor_x_total", "Two\nlines, a \\ and \"q\".", ["code": "a"])
      $0.add("y", 1.5, "pictor_y", "Y.")
      $0.add("b", 2, "pictor_x_total", "Another help.", ["code": "b"])
      $0.add("z", [:], "pictor_z_total", by: "code", "No event yet.")
    }
    #expect(
      text == """
        # HELP pictor_x_total Two\\nlines, a \\\\ and "q".
        # TYPE pictor_x_total counter
        pictor_x_total{code="a"} 1
        pictor_x_total{code="b"} 2
        # HELP pictor_y Y.
        # TYPE pictor_y gauge
        pictor_y 1.5
        # HELP pictor_z_total No event yet.
        # TYPE pictor_z_total counter

        """)
  }

  @Test func `OpenMetrics names counters apart, has units, and ends`() {
    let text = text(as: .openMetrics) {
      $0.add("a", 1, "pictor_x_bytes_total", "A \\ and \"q\".", ["code": "a"])
      $0.add("y", 1.5, "pictor_y", "Y.")
      $0.add("z", [:], "pictor_z_total", by: "code", "No event yet.")
    }
    #expect(
      text == """
        # HELP pictor_x_bytes A \\\\ and \\"q\\".
        # TYPE pictor_x_bytes counter
        # UNIT pictor_x_bytes bytes
        pictor_x_bytes_total{code="a"} 1
        # HELP pictor_y Y.
        # TYPE pictor_y gauge
        pictor_y 1.5
        # HELP pictor_z No event yet.
        # TYPE pictor_z counter
        # EOF

        """)
  }

  @Test func `a bucket has the last of its exemplars, in OpenMetrics alone`() throws {
    // Given traced durations on both sides of bounds, in two histograms
    let histograms = [LatencyHistogram(), LatencyHistogram()]
    let durations = [-1, 7, 8, 15, 1_000, 1_023, 1_024, 33_554_431, 33_554_432, 1 << 40]
    for (place, value) in durations.enumerated() {
      histograms[place % 2].record(microseconds: value)
      histograms[place % 2].exemplify(microseconds: value, traceID: "t\(place)")
      // The clock of exemplars counts microseconds.
      let now = WallClock.microseconds
      while WallClock.microseconds == now {}
    }
    let figures = LatencyHistogram.figures(of: histograms)
    func add(_ all: inout Figures) { all.add("x", figures, "pictor_x_seconds", "H.") }
    // When
    let lines = text(as: .openMetrics, add).split(separator: "\n").filter { $0.contains("t") }
    let found = lines.compactMap { line -> String? in
      let halves = line.split(separator: " # ")
      guard halves.count == 2 else { return nil }
      let parts = halves[1].split(separator: " ")
      #expect(
        parts.count == 3
          && Double(parts[2]).map { abs($0 - Double(WallClock.seconds)) < 60 } == true)
      return halves[0].prefix { $0 != "}" } + " " + parts[0] + parts[1]
    }
    // Then
    let name = "pictor_x_seconds_bucket{le="
    #expect(
      found == [
        name + #""8e-06" {trace_id="t1"}7e-06"#, name + #""1.6e-05" {trace_id="t3"}1.5e-05"#,
        name + #""0.001024" {trace_id="t5"}0.001023"#,
        name + #""0.002048" {trace_id="t6"}0.001024"#,
        name + #""33.554432" {trace_id="t7"}33.554431"#,
        name + #""+Inf" {trace_id="t9"}1099511.627776"#,
      ])
    #expect(!text(add).contains("trace_id"))
  }

  @Test(arguments: [
    ("plain", "plain"), ("\"", "\\\""), ("\\", "\\\\"), ("\n", "\\n"),
    ("a\\\"\nä", "a\\\\\\\"\\nä"),
    ("{},=", "{},="), ("\r\n", "\r\\n"),
  ])
  func `values of labels are escaped`(value: String, escaped: String) throws {
    let text = text { $0.add("x", 1, "pictor_x", "H.", ["a": value, "b": "y"]) }
    #expect(text.hasSuffix("pictor_x{a=\"\(escaped)\",b=\"y\"} 1\n"))
    #expect(try MetricsPage(text).value("pictor_x", ["a": value, "b": "y"]) == 1)
  }

  @Test(arguments: [
    (0.0, "0"), (12, "12"), (-3, "-3"), (0.5, "0.5"), (8e-06, "8e-06"), (.infinity, "+Inf"),
    (-.infinity, "-Inf"), (.nan, "NaN"), (1e18, "1e+18"),
    (9_007_199_254_740_991, "9007199254740991"),
  ])
  func `numbers are written as Prometheus reads them`(number: Double, text: String) {
    #expect(MetricText.text(of: number) == text)
  }

  @Test func `buckets are cumulative, and the last one counts all`() throws {
    // Given durations on both sides of bounds: a bound of 2^n µs has the recorded values below it
    let histogram = LatencyHistogram()
    for value in [0, 7, 8, 15, 16, 1_023, 1_024, 1_000_000, 33_554_431, 33_554_432, 1 << 40] {
      histogram.record(microseconds: value)
    }
    let figures = histogram.figures
    let page = try MetricsPage(text { $0.add("x", figures, "pictor_x_seconds", "H.") })
    func below(_ bound: String) -> Double? { page.value("pictor_x_seconds_bucket", ["le": bound]) }
    // Then
    #expect(below("8e-06") == 2 && below("1.6e-05") == 4 && below("3.2e-05") == 5)
    #expect(below("0.000512") == 5 && below("0.001024") == 6 && below("0.002048") == 7)
    #expect(below("0.524288") == 7 && below("1.048576") == 8 && below("33.554432") == 9)
    #expect(below("+Inf") == 11 && page.value("pictor_x_seconds_count") == 11)
    #expect(page.value("pictor_x_seconds_sum") == figures.sumSeconds)
  }

  @Test func `buckets of random durations are what counting gives`() {
    var random = SeededGenerator(seed: 15)
    for _ in 0..<50 {
      let values = (0..<Int.random(in: 0...200, using: &random)).map { _ in
        Int.random(in: 0...(1 << Int.random(in: 1...30, using: &random)), using: &random)
      }
      let histograms = [LatencyHistogram(), LatencyHistogram()]
      for (index, value) in values.enumerated() {
        histograms[index % 2].record(microseconds: value)
      }
      let figures = LatencyHistogram.figures(of: histograms)
      #expect(
        figures.buckets
          == LatencyFigures.bounds.map { bound in values.count { Double($0) / 1e6 < bound } })
      #expect(figures.count == values.count)
    }
  }

  @Test func `random families read back as they were written`() throws {
    var random = SeededGenerator(seed: 4)
    let alphabet: [Character] = ["a", "Z", "\\", "\"", "\n", "{", "}", ",", "=", " ", "é", "#"]
    func word(_ most: Int) -> String {
      String(
        (0..<Int.random(in: 1...most, using: &random)).map { _ in
          alphabet.randomElement(using: &random) ?? "a"
        })
    }
    for round in 0..<200 {
      // Given families with random help, labels and numbers
      let expected = (0..<Int.random(in: 1...5, using: &random)).map { index in
        let values = (0..<Int.random(in: 0...6, using: &random)).map { _ in
          (
            [word(5): Int.random(in: 0...(.max >> 11), using: &random)],
            Double.random(in: -1e9...1e9, using: &random)
          )
        }
        return (name: "pictor_\(round)_\(index)", help: "H" + word(12), values: values)
      }
      let text = text {
        for family in expected {
          $0.add("none", [:], family.name, by: "n", family.help)
          for (index, value) in family.values.enumerated() {
            let labels: KeyValuePairs = ["n": "\(index)", "word": value.0.keys.first ?? ""]
            $0.add(nil, value.1, family.name, family.help, labels)
          }
        }
      }
      // When
      let page = try MetricsPage(text)
      // Then
      #expect(page.families.map(\.name) == expected.map(\.name))
      for (family, wanted) in zip(page.families, expected) {
        #expect(family.help == wanted.help && family.type == "gauge")
        #expect(family.samples.map(\.value) == wanted.values.map(\.1))
        #expect(family.samples.map { $0.labels["word"] } == wanted.values.map(\.0.keys.first))
      }
    }
  }
}
