// RequestFigures: the part of `/stats` about the HTTP server.

/// Figures of the HTTP server.
public struct RequestFigures: Codable, Hashable, Sendable {
  /// Requests answered.
  public var total = 0
  /// Requests in progress.
  public var active = 0
  /// The maximum number of requests that may wait at once.
  public var limit = 0
  /// Responses by status code.
  public var byStatus: [String: Int] = [:]
  /// `/image` responses by origin: `memory`, `disk`, `source`, `variant`, `origin`, `stale` (served
  /// instead of an error of the origin), `error`.
  public var byOrigin: [String: Int] = [:]
  /// `/image` responses from memory or disk ÷ all `/image` responses with an image.
  public var hitRatio = 0.0
  /// `/image` responses by outcome and tier: `hit` and `stale_hit` by tier; `miss`, `stale_if_error` and `error` with the
  /// tier `none`.
  public var byOutcome: [String: [String: Int]] = [:]
  /// Error responses of every path by error code.
  public var errors: [String: Int] = [:]
  /// Failed images of requests with a fallback, by what was sent: `image`, `redirect`, or `unavailable` for the JSON
  /// error, because the fallback could not be had.
  public var fallbacks: [String: Int] = [:]
  /// Body bytes sent.
  public var bytesSent = 0
  /// Clients that disconnected before their response.
  public var clientsGone = 0
  /// Open connections; those of clients if there is a listener for operators.
  public var connections = 0
  /// Open connections of the operators' listener.
  public var operatorConnections = 0
  /// Connections that were closed while they waited for a request, because a newer one needed the place.
  public var connectionsYielded = 0
  /// New connections that were refused, because their client had its share.
  public var connectionsRefused = 0
  /// Requests that were refused because their client had its share: `active_requests`, `imaging_time`, `requests`.
  public var rateLimited: [String: Int] = [:]
  /// Requests with a wrong operator's token (`wrong`), and those refused after too many of them (`limited`).
  public var tokensRefused: [String: Int] = [:]
  /// Request targets whose cache keys are kept after a hit, besides those that each event loop remembers whole.
  public var knownTargets = 0
  /// Time from the request head to the response, for memory hits.
  public var hitLatency: LatencyFigures?
  /// The same for all other image requests.
  public var missLatency: LatencyFigures?
  /// The phases of image requests that were not memory hits, by their name in `Server-Timing`.
  public var stages: [String: LatencyFigures] = [:]

  /// Creates figures of zero.
  public init() {}

  enum CodingKeys: String, CodingKey {
    case total, active, limit, connections, errors, stages, fallbacks
    case byStatus = "by_status"
    case byOrigin = "by_origin"
    case byOutcome = "by_outcome"
    case hitRatio = "hit_ratio"
    case operatorConnections = "operator_connections"
    case connectionsYielded = "connections_yielded"
    case connectionsRefused = "connections_refused"
    case rateLimited = "rate_limited"
    case tokensRefused = "tokens_refused"
    case bytesSent = "bytes_sent"
    case clientsGone = "clients_gone"
    case knownTargets = "known_targets"
    case hitLatency = "hit_latency"
    case missLatency = "miss_latency"
  }
}
