// DryRun: makes a downloader report connections instead of making them, for the self-test.

import Model

/// A downloader's settings for the self-test: each load runs as always, up to the moment in which a
/// socket would be opened.
struct DryRun: Sendable {
  /// Returns the `Location` of a redirect that a load begins with, as if an origin that may be loaded had sent it; `nil`
  /// for none.
  let location: @Sendable () -> String?
  /// Receives each endpoint that a load would connect to.
  let report: @Sendable (String) -> Void
}
