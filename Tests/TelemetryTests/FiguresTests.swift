// FiguresTests: a figure is declared once, and is in /stats and /metrics.

import FoundationEssentials
import TestSupport
import Testing

@testable import Core

struct FiguresTests {
  private final class Counters: Sendable {
    let ended = Counter("ended", "pictor_ended_total", "Ended.", ["result": "ended"])
    let failed = CodeCounts("failed", "pictor_failures_total", by: "code", "Failed, by code.")
    let running = Gauge("running", "pictor_running", "Running.")
    let time = LatencyHistogram("time", "pictor_time_seconds", "Time.")
    let nameless = Counter()
  }

  private func page(_ figures: Figures) throws -> MetricsPage {
    try MetricsPage(String(decoding: MetricText.bytes(of: figures), as: UTF8.self))
  }

  @Test func `the named meters of an object are its figures`() throws {
    let counters = Counters()
    counters.ended.add(3)
    counters.failed.add("timeout")
    counters.running.set(2)
    counters.time.record(.seconds(1))
    counters.nameless.add()
    let figures = Figures(of: counters)
    // Then each has its value under its key
    #expect(figures.ended == 3 && figures.running == 2 && figures.failed == ["timeout": 1])
    #expect(figures.time.count == 1 && figures.time.sumSeconds == 1.0)
    // And under its name, with its type and its labels
    let page = try page(figures)
    #expect(
      page.families.map { "\($0.name) \($0.type): \($0.help)" } == [
        "pictor_ended_total counter: Ended.", "pictor_failures_total counter: Failed, by code.",
        "pictor_running gauge: Running.", "pictor_time_seconds histogram: Time.",
      ])
    #expect(page.value("pictor_ended_total", ["result": "ended"]) == 3)
    #expect(page.value("pictor_failures_total", ["code": "timeout"]) == 1)
    #expect(page.value("pictor_time_seconds_count") == 1)
  }

  @Test func `parts are groups, and their samples stand with those of the same name`() throws {
    var all = Figures()
    for (tier, hits) in [("memory", 5), ("disk", 2)] {
      var part = Figures()
      part.add("hits", hits, "pictor_lookups_total", "Look-ups.", ["result": "hit"])
      part.label("tier", tier)
      all.add(tier, part)
    }
    #expect(all.memory.hits == 5 && all.disk.hits == 2 && all.absent.isAbsent)
    let page = try page(all)
    #expect(page.families.count == 1)
    #expect(page.value("pictor_lookups_total", ["tier": "disk", "result": "hit"]) == 2)
  }

  @Test func `numbers of one key and name add up`() throws {
    var figures = Figures()
    for count in [1, 2] { figures.add("x", count, "pictor_x", "X.") }
    #expect(try figures.x == 3 && page(figures).value("pictor_x") == 3)
  }

  @Test func `no limit is infinite`() throws {
    let budget = Figures(budget: "jobs", bytes: 0, peak: 0, limit: .max, refused: 0)
    #expect(try page(budget).value("pictor_budget_limit_bytes", ["budget": "jobs"]) == .infinity)
  }

  @Test func `stats read back as they were written`() throws {
    var figures = Figures()
    figures.add("ready", true)
    figures.add("count", 1)
    figures.add("ratio", 0.5)
    figures.add("version", Figure.text("1.2.3"))
    figures.add("addresses", Figure.texts(["a", "b"]))
    var part = Figures()
    part.add("failed_urls", 7)
    figures.add("flights", part)
    let json = try JSONEncoder().encode(figures)
    let read = try JSONDecoder().decode(Figures.self, from: json)
    #expect(read == figures)
    #expect(read.ready == true && read.ratio == 0.5 && read.version == "1.2.3")
    #expect(read.flights.failedURLs == 7)
  }
}
