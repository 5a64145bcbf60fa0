// RequestRules: what is known of every request for a picture before its query is read.

import Model

/// What the operator decided of the requests of `/image`. Made once, before the server starts.
struct RequestRules: Sendable {
  /// What keys are made of, and which fields of clients' headers go on to origins.
  let keyFilter: CacheKeyFilter

  /// The rules of a server.
  init(_ configuration: ServerConfiguration) {
    keyFilter = configuration.keyFilter
  }
}
