// TracingSettings: the keys `tracing.…`: distributed traces.

/// The settings of distributed tracing, `tracing.…`. By default nothing leaves the server.
public struct TracingSettings: Hashable, Sendable {
  /// Patterns of sources (`SourcePattern`) whose origins get `traceparent` and `tracestate`; empty:
  /// none. Checked for each hop.
  public var propagate: [String] = []
  /// The URL that spans are sent to (OTLP/HTTP, JSON); empty: no spans are recorded.
  public var endpoint = ""
  /// Header fields for the collector, by name.
  public var headers: [String: SecretText] = [:]
  /// The share of requests that are recorded, 0–1, where no trusted proxy has decided.
  public var sample = 0.01

  /// Creates the default settings.
  public init() {}
}
