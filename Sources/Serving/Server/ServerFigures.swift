// ServerFigures: what the server counts of its requests.

import Platform
import Telemetry

/// Counts of one server: what hits change is counted by each worker for itself, all else here.
final class ServerFigures: Sendable {
  /// Answers by status, other than the workers' 200 and 304.
  let statuses = CodeCounts()
  /// `/image` answers by where they came from, other than memory hits.
  let origins = CodeCounts()
  /// Clients that left before their answer.
  let clientsGone = Counter()
  /// Images that were no memory hits.
  let missLatency = LatencyHistogram()

  private let workers = Lock<[EventLoopState]>([])

  /// Counts a further worker's tallies.
  func add(_ worker: EventLoopState) { workers.withLock { $0.append(worker) } }

  /// Requests being answered now.
  var active: Int { workers.withLock { $0.reduce(0) { $0 + $1.active.value } } }

  /// The state now.
  func figures(limit: Int, connections: Int) -> RequestFigures {
    let workers = workers.withLock { $0 }
    func sum(_ tally: (EventLoopState) -> SingleWriterCounter) -> Int {
      workers.reduce(0) { $0 + tally($1).value }
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
    figures.hitLatency = LatencyHistogram.figures(of: workers.map(\.hitLatency))
    figures.missLatency = missLatency.figures
    figures.byOrigin = origins.values
    let memory = figures.hitLatency?.count ?? 0
    figures.byOrigin["memory", default: 0] += memory
    let hits = ["memory", "disk", "source", "stale"].reduce(0) { $0 + (figures.byOrigin[$1] ?? 0) }
    let images = hits + (figures.byOrigin["origin"] ?? 0)
    figures.hitRatio = images > 0 ? Double(hits) / Double(images) : 0
    figures.bytesSent = sum(\.bytesSent)
    figures.clientsGone = clientsGone.value
    figures.connections = connections
    return figures
  }
}
