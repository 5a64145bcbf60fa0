// SpanExporterConfiguration: where spans are sent, and the limits of it.

import Model

/// The settings of a `SpanExporter`.
public struct SpanExporterConfiguration: Sendable {
  /// The collector's URL for spans, with its path.
  public var endpoint: String
  /// Header fields for the collector; they may be secrets.
  public var headers: [HeaderField] = []
  /// A file with certificate authorities; empty: the system's.
  public var caFile = ""
  /// The name of this running server, unlike that of any other: `service.instance.id`.
  public var instance = ""

  /// The most spans of a request to the collector.
  public var batchLimit = 512
  /// How long the first span of a batch waits for others.
  public var delay: Duration = .seconds(5)
  /// The most spans that may be queued, those being sent included.
  public var queueLimit = 2_048
  /// The most time of a request to the collector.
  public var timeout: Duration = .seconds(10)
  /// How a failed request is repeated.
  var policy = ExportPolicy()

  /// Creates the settings for a collector.
  public init(endpoint: String) { self.endpoint = endpoint }
}
