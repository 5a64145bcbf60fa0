// ServerFigures: the request figures of a server.

import Core

/// Counters of one server. Each event loop counts memory hits itself; everything else is counted
/// here.
final class ServerFigures: Sendable {
  /// Responses by status, except the 200 and 304 that the event loops count.
  let statuses = CodeCounts()
  let errors = CodeCounts(
    "errors", "pictor_request_errors_total", by: "code",
    "Error responses of all paths, by error code.")
  let fallbacks = CodeCounts(
    "fallbacks", "pictor_fallbacks_total", by: "answer",
    "Failed images with a fallback, by what was sent: image, redirect, or unavailable for JSON.")
  /// `/image` responses by outcome and tier, except memory hits.
  let outcomes = OutcomeCounts()
  /// The phases of images that were not memory hits.
  let stages = StageLatencies()
  /// Latency of stale hits in memory.
  let staleHitLatency = LatencyHistogram()
  /// Latency of images that were not memory hits.
  let missLatency = LatencyHistogram()
  let clientsGone = Counter(
    "clients_gone", "pictor_clients_gone_total",
    "Clients that disconnected before their response.")
  /// Without a listener for operators, those of everyone.
  let connections = Gauge(
    "connections", "pictor_connections", "Open connections.", ["listener": "clients"])
  let operatorConnections = Gauge(
    "operator_connections", "pictor_connections", "Open connections of operators.",
    ["listener": "operators"])
  let connectionsYielded = Counter(
    "connections_yielded", "pictor_connections_yielded_total",
    "Idle connections closed for newer ones.")
  let connectionsRefused = Counter(
    "connections_refused", "pictor_connections_refused_total",
    "New connections refused because their client had its share.")
  /// By `RateLimit`.
  let rateLimited = CodeCounts(
    "rate_limited", "pictor_rate_limited_requests_total", by: "limit",
    "Requests refused because their client had its share, by limit.")
  /// `wrong`, or `limited` after too many wrong ones.
  let tokensRefused = CodeCounts(
    "tokens_refused", "pictor_refused_tokens_total", by: "reason",
    "Operators' requests whose token was refused, by reason.")

  private let loops = Lock<[EventLoopState]>([])
  private let tables = Lock<[KnownTargets]>([])

  func add(_ loop: EventLoopState) { loops.withLock { $0.append(loop) } }

  /// Adds the targets that a listener keeps.
  func add(_ table: KnownTargets) { tables.withLock { $0.append(table) } }

  func figures(limit: Int) -> Figures {
    let loops = loops.withLock { $0 }
    func sum(_ counter: (EventLoopState) -> SingleWriterCounter) -> Int {
      loops.reduce(0) { $0 + counter($1).value }
    }
    var figures = Figures(of: self)
    figures.add("active", sum(\.active), "pictor_requests_active", "Requests in progress.")
    figures.add(
      "limit", limit, "pictor_requests_active_limit",
      "The maximum number of requests that may wait.")
    figures.add(
      "bytes_sent", sum(\.bytesSent), "pictor_response_body_bytes_total",
      "Bytes of response bodies sent.")
    figures.add(
      "known_targets", tables.withLock { $0 }.reduce(0) { $0 + $1.count }, "pictor_known_targets",
      "Request targets whose cache keys are kept after a hit.")
    var statuses = statuses.values
    for (status, count) in [("200", sum(\.succeeded)), ("304", sum(\.notModified))] where count > 0
    {
      statuses[status] = count
    }
    figures.add(
      "by_status", statuses, "pictor_http_responses_total", by: "code",
      "Responses of all paths, by HTTP status code.")
    figures.add("total", statuses.values.reduce(0, +))
    let hitLatencies = loops.map(\.hitLatency)
    figures.add(
      "hit_latency", LatencyHistogram.figures(of: hitLatencies + [staleHitLatency]),
      "pictor_image_duration_seconds",
      "Time from the request head to the response: hits in memory, and all other images.",
      ["path": "memory_hit"])
    figures.add(
      "miss_latency", missLatency.figures, "pictor_image_duration_seconds", "All other images.",
      ["path": "other"])
    figures.add("stages", stages.figures)
    addOutcomes(
      outcomes.values(
        memoryHits: LatencyHistogram.figures(of: hitLatencies).count,
        staleMemoryHits: staleHitLatency.figures.count),
      to: &figures)
    return figures
  }

  private func addOutcomes(_ outcomes: [String: [String: Int]], to figures: inout Figures) {
    var byOutcome = Figures()
    for (outcome, tiers) in outcomes.sorted(by: { $0.key < $1.key }) {
      var counts = Figures()
      for (tier, count) in tiers.sorted(by: { $0.key < $1.key }) {
        counts.add(
          tier, count, "pictor_image_requests_total",
          "Answered requests for images and descriptions, by outcome and by the tier that had them.",
          ["outcome": outcome, "tier": tier])
      }
      byOutcome.add(outcome, counts)
    }
    figures.add("by_outcome", byOutcome)
    let byOrigin = Self.byOrigin(outcomes)
    figures.add("by_origin", Figure.group(byOrigin.mapValues { .integer($0) }))
    let hits = ["memory", "disk", "source", "stale"].reduce(0) { $0 + (byOrigin[$1] ?? 0) }
    let images = hits + (byOrigin["origin"] ?? 0)
    figures.add("hit_ratio", images > 0 ? Double(hits) / Double(images) : 0)
  }

  /// Returns the counts by origin: the tier of hits and stale hits, and a name for each other
  /// outcome. Only `memory` may be 0.
  private static func byOrigin(_ outcomes: [String: [String: Int]]) -> [String: Int] {
    var counts: [String: Int] = [:]
    for (outcome, tiers) in outcomes {
      for (tier, count) in tiers {
        let name =
          switch outcome {
          case "miss": "origin"
          case "stale_if_error": "stale"
          case "error": "error"
          default: tier
          }
        counts[name, default: 0] += count
      }
    }
    return counts.filter { $0.key == "memory" || $0.value > 0 }
  }
}

/// Counters of image responses, except hits and stale hits in memory, which latency counts.
final class OutcomeCounts: Sendable {
  /// By outcome and tier. All are reported: rates then count the first response.
  private let counters: [String: [String: Counter]] = {
    let tiers = [CacheStatus.Tier.disk, .source, .variant, .shared].map(\.rawValue)
    let byOutcome = [
      "hit": tiers, "stale_hit": tiers, "miss": ["none"], "stale_if_error": ["none"],
      "error": ["none"],
    ]
    return byOutcome.mapValues { tiers in
      Dictionary(uniqueKeysWithValues: tiers.map { ($0, Counter()) })
    }
  }()

  func add(_ status: CacheStatus) {
    switch status {
    case .hit(let tier): add("hit", tier.rawValue)
    case .staleHit(let tier, _, _): add("stale_hit", tier.rawValue)
    case .miss: add("miss")
    case .staleIfError: add("stale_if_error")
    }
  }

  func addError() { add("error") }

  private func add(_ outcome: String, _ tier: String = "none") { counters[outcome]?[tier]?.add() }

  /// Returns the counts by outcome and tier.
  func values(memoryHits: Int, staleMemoryHits: Int) -> [String: [String: Int]] {
    var values = counters.mapValues { $0.mapValues(\.value) }
    values["hit"]?["memory"] = memoryHits
    values["stale_hit"]?["memory"] = staleMemoryHits
    return values
  }
}

/// Histograms of the phases of image requests.
final class StageLatencies: Sendable {
  /// In the order of `Timings.Stage.allCases`.
  private let histograms = Timings.Stage.allCases.map { _ in LatencyHistogram() }
  private let disk: LatencyHistogram?

  init() { disk = zip(Timings.Stage.allCases, histograms).first { $0.0 == .disk }?.1 }

  /// Records the phases that happened, of a trace if there is one.
  func record(_ timings: Timings, traceID: String? = nil) {
    for (stage, histogram) in zip(Timings.Stage.allCases, histograms) {
      guard let duration = timings[stage] else { continue }
      let microseconds = duration.wholeNanoseconds / 1_000
      histogram.record(microseconds: microseconds)
      if let traceID { histogram.exemplify(microseconds: microseconds, traceID: traceID) }
    }
  }

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
