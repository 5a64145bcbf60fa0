// EntryMetadata+Shared: bounds for the metadata of entries that another machine wrote.

import Model

extension EntryMetadata {
  /// The longest entity tag of another machine's entry, in bytes. Each hit sends it.
  static let longestSharedTag = 256

  /// Returns the metadata within this machine's bounds: the shared tier is untrusted input. `nil`
  /// if a variant's entity tag is too long; a source's only saves a transfer, so it is dropped.
  ///
  /// - Parameter longest: the longest lifetime that this machine would give an entry, in seconds.
  func bounded(to longest: Int, at now: UnixTime) -> EntryMetadata? {
    var result = self
    switch content {
    case .variant(var info):
      guard info.etag.heldBytes <= Self.longestSharedTag else { return nil }
      info.freshness = info.freshness.bounded(to: longest, at: now)
      result.content = .variant(info)
    case .source(var origin, let freshness, let version, let generation):
      if origin.etag?.utf8.count ?? 0 > Self.longestSharedTag { origin.etag = nil }
      result.content = .source(
        origin, freshness.bounded(to: longest, at: now), version: version, generation: generation)
    }
    return result
  }
}

extension Freshness {
  /// The freshness with no time of the future, and no lifetime beyond `longest` seconds. Stale
  /// times come from origins, too, so only the bound of the settings holds for them.
  fileprivate func bounded(to longest: Int, at now: UnixTime) -> Freshness {
    let longestStale = FreshnessSettings.allowed.upperBound.flooredSeconds
    return Freshness(
      receivedAt: min(receivedAt, now), initialAge: initialAge, lifetime: min(lifetime, longest),
      isStorable: isStorable, mayBeStale: mayBeStale,
      staleWhileRevalidate: min(staleWhileRevalidate, longestStale),
      staleIfError: min(staleIfError, longestStale), isImmutable: isImmutable, isStated: isStated,
      clientLifetime: min(clientLifetime, longest), clientTime: clientTime)
  }
}
