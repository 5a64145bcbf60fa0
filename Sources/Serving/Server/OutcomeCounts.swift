// OutcomeCounts: counts image responses by outcome and tier.

import Model
import Telemetry

/// Counters of image responses, except hits and stale hits in memory, which latency counts.
final class OutcomeCounts: Sendable {
  private typealias Tier = CacheStatus.Tier
  private let hits = Tier.onDisk.map { _ in Counter() }
  private let staleHits = Tier.onDisk.map { _ in Counter() }
  private let misses = Counter()
  private let staleIfError = Counter()
  private let errors = Counter()

  /// Counts a delivered image.
  func add(_ status: CacheStatus) {
    switch status {
    case .hit(let tier): Self.counter(of: tier, in: hits)?.add()
    case .staleHit(let tier, _, _): Self.counter(of: tier, in: staleHits)?.add()
    case .miss: misses.add()
    case .staleIfError: staleIfError.add()
    }
  }

  /// Counts an error.
  func addError() { errors.add() }

  /// Returns the counts by outcome and tier, all of them: rates then count the first response.
  func values(memoryHits: Int, staleMemoryHits: Int) -> [String: [String: Int]] {
    [
      "hit": Self.values(of: hits, memory: memoryHits),
      "stale_hit": Self.values(of: staleHits, memory: staleMemoryHits),
      "miss": ["none": misses.value], "stale_if_error": ["none": staleIfError.value],
      "error": ["none": errors.value],
    ]
  }

  private static func counter(of tier: Tier, in counters: [Counter]) -> Counter? {
    Tier.onDisk.firstIndex(of: tier).map { counters[$0] }
  }

  private static func values(of counters: [Counter], memory: Int) -> [String: Int] {
    zip(Tier.onDisk, counters).reduce(into: ["memory": memory]) { values, pair in
      values[pair.0.rawValue] = pair.1.value
    }
  }
}

extension CacheStatus.Tier {
  /// The tiers that are counted here.
  fileprivate static let onDisk: [CacheStatus.Tier] = [.disk, .source, .variant, .shared]
}

/// Histograms of the phases of image requests.
final class StageLatencies: Sendable {
  /// In the order of `Timings.Stage.allCases`.
  private let histograms = Timings.Stage.allCases.map { _ in LatencyHistogram() }
  private let disk: LatencyHistogram?

  /// Creates empty histograms.
  init() { disk = zip(Timings.Stage.allCases, histograms).first { $0.0 == .disk }?.1 }

  /// Records the phases that happened.
  func record(_ timings: Timings) {
    for (stage, histogram) in zip(Timings.Stage.allCases, histograms) {
      if let duration = timings[stage] { histogram.record(duration) }
    }
  }

  /// Records a read from disk, in microseconds.
  func record(diskMicroseconds: Int) { disk?.record(microseconds: diskMicroseconds) }

  /// The summary of each phase.
  var figures: Figures {
    var figures = Figures()
    for (stage, histogram) in zip(Timings.Stage.allCases, histograms) {
      figures.add(
        stage.rawValue, histogram.figures, "pictor_image_stage_duration_seconds",
        "Time in each stage of Server-Timing, of images that were not memory hits; requests of one flight count once.",
        ["stage": stage.rawValue])
    }
    return figures
  }
}
