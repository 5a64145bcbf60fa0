// EntryValidity: decides whether a source or a variant is current, and makes check-then-store atomic.

import Model

/// Decides whether cached and new entries are current: neither purged nor of a replaced source.
final class EntryValidity: Sendable {
  /// The last purge and the last upload before a load. After a later one, the result of the load
  /// must not be stored.
  struct LoadStart: Sendable {
    /// The number of the last purge.
    let generation: Int
    /// The number of the last upload.
    let upload: Int
  }

  private let purges: any PurgeList
  private let versions = SourceVersions()
  private let gate = PurgeGate()

  init(purges: any PurgeList) { self.purges = purges }

  /// The number of the last purge.
  var generation: Int { purges.generation }

  /// Returns the start of a load. Read it before the first look-up.
  func loadStart(of key: CacheKey) -> LoadStart {
    gate.hold(for: key) { LoadStart(generation: purges.generation, upload: versions.lastPut) }
  }

  // MARK: Checks

  /// Returns whether a variant is neither purged nor rendered from a replaced source.
  func isCurrent(_ variant: Variant) -> Bool {
    versions.allows(variant) && !isPurged(variant.key, since: variant.info.generation)
  }

  /// Returns whether a source is neither replaced nor purged.
  func isCurrent(_ source: Source) -> Bool { isLatest(source) && !isPurged(source) }

  /// Returns whether an entry is neither purged nor, if it is a variant, of a replaced source.
  func isCurrent(_ entry: CacheEntryInfo, of key: CacheKey) -> Bool {
    guard !isPurged(key, since: entry.generation) else { return false }
    guard case .variant(let info) = entry.stored else { return true }
    return versions.allows(info.sourceVersion, of: key.source)
  }

  /// Returns whether no other version of a source is known.
  func isLatest(_ source: Source) -> Bool { versions.allows(source) }

  /// Returns whether a source was purged after its load began.
  func isPurged(_ source: Source) -> Bool { isPurged(source.key, since: source.generation) }

  /// Returns whether a purge after `generation` covers `key`.
  func isPurged(_ key: CacheKey, since generation: Int) -> Bool {
    purges.covers(key, generation: generation)
  }

  /// Returns whether an image was uploaded for this source after `start`.
  func isUploaded(_ source: CacheKey, since start: LoadStart) -> Bool {
    versions.isPut(source, since: start.upload)
  }

  // MARK: Changes

  /// Runs `work`, which checks and stores and must not block. A purge that is published meanwhile
  /// waits for it.
  func writing<Result>(_ key: CacheKey, work: () -> Result) -> Result {
    gate.hold(for: key, work)
  }

  /// Waits for the writers that checked before the last purge was published.
  func waitForWriters() { gate.pass() }

  /// Records the current version of a source. Variants of other versions are outdated from now on.
  func recordChange(of source: CacheKey, to version: UInt64, isUpload: Bool = false) {
    versions.change(source, to: version, isPut: isUpload)
  }

  /// Records a downloaded version where no source was cached.
  func recordLoad(of source: CacheKey, version: UInt64) {
    versions.load(source, version: version)
  }
}
