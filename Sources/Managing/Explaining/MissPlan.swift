// MissPlan: what is known of a miss that is only explained, and what a step would make of it.

import Model

/// A current entry of a tier, without its body.
struct PlannedEntry: Sendable {
  let info: CacheEntryInfo
  /// How the entry may satisfy the request, or `nil` if the origin must be asked first.
  let use: EntryUse?

  /// The metadata of a variant, if the tier tells it.
  var variant: VariantInfo? {
    if case .variant(let info) = info.stored { info } else { nil }
  }
}

/// The source that a miss would get.
enum PlannedSource: Sendable {
  /// The source on disk, without asking the origin.
  case cached(PlannedEntry)
  /// The source from its origin. With `stale`, the source on disk in place of a load that is certain
  /// to fail.
  case forwarded(CacheStatus.Forward, stale: CacheEntryInfo?)

  /// Why the loader would be called, or `nil` if it would not.
  var forward: CacheStatus.Forward? {
    switch self {
    case .cached: nil
    case .forwarded(let forward, let stale): stale == nil ? forward : .stale
    }
  }

  /// The metadata of a source that is certain to be used, and its version.
  var known: (info: CacheEntryInfo, version: UInt64)? {
    let info: CacheEntryInfo?
    switch self {
    case .cached(let entry): info = entry.info
    case .forwarded(_, let stale): info = stale
    }
    guard let info, case .source(_, let version) = info.stored else { return nil }
    return (info, version)
  }

  /// Why the source would be used stale, or `nil`.
  var stale: CacheStatus.StaleReason? {
    switch self {
    case .cached(let entry): entry.use?.staleReason
    case .forwarded(_, let stale): stale == nil ? nil : .ifError
    }
  }
}

/// A miss that is only explained: no step loads, stores or counts anything.
struct MissPlan: Sendable {
  let request: ImageRequest
  /// The current variant in memory.
  var inMemory: PlannedEntry?
  /// The current variant on disk.
  var onDisk: PlannedEntry?
  /// The source that the miss would get.
  var source: PlannedSource?
  /// Whether the miss would join a running flight.
  var isCollapsed = false

  /// Whether a tier has a variant that is too stale. See `Miss.hasEntry`.
  var hasEntry: Bool { inMemory != nil || onDisk != nil }

  /// The cached variant that could take over the freshness of the source. See `Miss.renewable`.
  var renewable: VariantInfo? {
    guard let known = source?.known, known.version != 0,
      let cached = inMemory ?? onDisk, cached.info.isInMemory, let info = cached.variant,
      info.sourceVersion == known.version, !info.isDamaged,
      info.watermarkVersion == 0, request.transform.watermark == nil
    else { return nil }
    return info
  }
}

/// What a step would make of a miss, with the reason.
enum PlannedOutcome: Sendable {
  /// The next step decides.
  case next(String)
  /// The start of the response's `Cache-Status` field.
  case response(String, String)
  /// The error that ends the miss.
  case failure(ImageError, String)
  /// The variant of another request answers.
  case fallback(ImageRequest, String)
}
