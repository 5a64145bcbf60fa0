// LoadOutlook: what would happen to a load now, without loading.

/// The state of a loader for one URL.
public struct LoadOutlook: Hashable, Sendable, Codable {
  /// A circuit breaker's state for a host.
  public enum Circuit: String, Hashable, Sendable, Codable {
    /// Loads are admitted.
    case closed
    /// Loads are refused.
    case open
    /// The next load is admitted as the probe.
    case halfOpen = "half-open"
  }

  /// The host and port that are connected to; `nil` for a refused URL.
  public var host: String?
  /// The code of the error with which the load would be refused; `nil` if it would be tried.
  public var refusal: String?
  /// The state of the host's circuit.
  public var circuit = Circuit.closed
  /// Seconds until an open circuit becomes half-open; `nil` if it is not open.
  public var opensAgain: Double?
  /// Failures in a row that count towards opening the circuit.
  public var recentFailures = 0
  /// Whether an operator paused the download queue.
  public var isPaused = false
  /// Running downloads from the host.
  public var running = 0
  /// Downloads from the host that wait in the queue.
  public var waiting = 0
  /// The limit of running downloads from the host.
  public var limitPerHost = 0
  /// The limit of a body in bytes.
  public var maximumBytes = 0

  private enum CodingKeys: String, CodingKey {
    case host, refusal, circuit, running, waiting
    case opensAgain = "circuit_seconds"
    case recentFailures = "recent_failures"
    case isPaused = "paused"
    case limitPerHost = "limit_per_host"
    case maximumBytes = "maximum_bytes"
  }

  /// The error with which the load would be refused; not encoded.
  public var error: ImageError? {
    didSet { refusal = error?.code }
  }

  /// Creates the outlook of a load that would be tried.
  public init() {}
}
