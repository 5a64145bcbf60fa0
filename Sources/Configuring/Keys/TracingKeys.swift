// TracingKeys: the keys of distributed traces, `tracing.…`.

import Model

extension Configuration {
  /// The keys of distributed traces.
  static let tracingKeys: [ConfigurationKey] = [
    .list(
      "tracing.propagate", at: \.tracing.propagate,
      purpose: "hosts whose origins get the traceparent and tracestate of the request that starts "
        + "a download; \"*\": all; empty: none",
      allowed: sourcePatterns, where: isSourcePattern)
  ]
}
