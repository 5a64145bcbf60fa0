// ServerFigures: the request figures of a server.

import Platform
import Telemetry

/// Counters of one server. Each event loop counts memory hits itself; everything else is counted
/// here.
final class ServerFigures: Sendable {
  /// Responses by status, except the 200 and 304 that the event loops count.
  let statuses = CodeCounts()
  /// Error responses by error code.
  let errors = CodeCounts()
  /// Failed images by what was sent in their place: `image`, `redirect`, `unavailable`.
  let fallbacks = CodeCounts()
  /// `/image` responses by outcome and tier, except memory hits.
  let outcomes = OutcomeCounts()
  /// The phases of images that were not memory hits.
  let stages = StageLatencies()
  /// Latency of stale hits in memory.
  let staleHitLatency = LatencyHistogram()
  /// Clients that disconnected before their response.
  let clientsGone = Counter()
  /// Latency of images that were not memory hits.
  let missLatency = LatencyHistogram()

  /// Open connections of clients; of everyone, without a listener for operators.
  let connections = Gauge()
  /// Open connections of the operators' listener.
  let operatorConnections = Gauge()
  /// Connections that yielded to newer ones.
  let connectionsYielded = Counter()
  /// New connections of clients that had their share.
  let connectionsRefused = Counter()
  /// Requests that were refused for their client's share, by `RateLimit`.
  let rateLimited = CodeCounts()

  /// Requests with a token that was not accepted: `wrong`, or `limited` after too many wrong ones.
  let tokensRefused = CodeCounts()

  private let loops = Lock<[EventLoopState]>([])
  private let tables = Lock<[KnownTargets]>([])

  /// Adds the counters of an event loop.
  func add(_ loop: EventLoopState) { loops.withLock { $0.append(loop) } }

  /// Adds the targets that a listener keeps.
  func add(_ table: KnownTargets) { tables.withLock { $0.append(table) } }

  /// Returns the current figures.
  func figures(limit: Int) -> RequestFigures {
    let loops = loops.withLock { $0 }
    func sum(_ counter: (EventLoopState) -> SingleWriterCounter) -> Int {
      loops.reduce(0) { $0 + counter($1).value }
    }
    var figures = RequestFigures()
    figures.active = sum(\.active)
    figures.limit = limit
    figures.byStatus = statuses.values
    for (status, count) in [("200", sum(\.succeeded)), ("304", sum(\.notModified))] where count > 0
    {
      figures.byStatus[status] = count
    }
    figures.total = figures.byStatus.values.reduce(0, +)
    figures.errors = errors.values
    figures.fallbacks = fallbacks.values
    figures.stages = stages.figures
    let hitLatencies = loops.map(\.hitLatency)
    figures.hitLatency = LatencyHistogram.figures(of: hitLatencies + [staleHitLatency])
    figures.missLatency = missLatency.figures
    figures.byOutcome = outcomes.values(
      memoryHits: LatencyHistogram.figures(of: hitLatencies).count,
      staleMemoryHits: staleHitLatency.figures.count)
    figures.byOrigin = Self.byOrigin(figures.byOutcome)
    let hits = ["memory", "disk", "source", "stale"].reduce(0) { $0 + (figures.byOrigin[$1] ?? 0) }
    let images = hits + (figures.byOrigin["origin"] ?? 0)
    figures.hitRatio = images > 0 ? Double(hits) / Double(images) : 0
    figures.bytesSent = sum(\.bytesSent)
    figures.clientsGone = clientsGone.value
    figures.connections = connections.value
    figures.operatorConnections = operatorConnections.value
    figures.connectionsYielded = connectionsYielded.value
    figures.connectionsRefused = connectionsRefused.value
    figures.rateLimited = rateLimited.values
    figures.tokensRefused = tokensRefused.values
    figures.knownTargets = tables.withLock { $0 }.reduce(0) { $0 + $1.count }
    return figures
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
