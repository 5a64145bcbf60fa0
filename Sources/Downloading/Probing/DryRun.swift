// DryRun: makes a downloader report connections instead of making them, for the self-test.

import Model

/// A downloader's settings for the self-test: each load runs as always, up to the moment in which a
/// socket would be opened. Only the self-test's own origin is connected to.
struct DryRun: Sendable {
  /// The port of the self-test's own origin, on 127.0.0.1.
  let originPort: Int
  /// Receives each endpoint that a load would connect to.
  let report: @Sendable (String) -> Void

  /// Whether a hop goes to the self-test's own origin, which no rule applies to.
  func isOrigin(_ url: SourceURL) -> Bool {
    url.scheme == .http && url.host == "127.0.0.1" && url.port == originPort
  }
}
