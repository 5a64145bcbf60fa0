// TracingSettings: the keys `tracing.…`: distributed traces.

/// The settings of distributed tracing, `tracing.…`. By default nothing leaves the server.
public struct TracingSettings: Hashable, Sendable {
  /// Patterns of sources (`SourcePattern`) whose origins get `traceparent` and `tracestate`; empty:
  /// none. Checked for each hop.
  public var propagate: [String] = []

  /// Creates the default settings.
  public init() {}
}
