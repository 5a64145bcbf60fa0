// EntryValidity: decides whether a source or a variant is current, and makes check-then-store
// atomic.

import Core
import Synchronization

/// Decides whether cached and new entries are current: neither purged nor of a replaced source.
///
/// Check-then-store is not atomic. Writers hold a shard of a lock across both; a purge, once
/// published, acquires each shard once. So every earlier store is visible to the purge, and every
/// later check sees the purge.
///
/// Removing the variants of a replaced source is not enough: a running flight may store one
/// afterwards, and a disk read may promote one to memory. So every store and every read of a
/// variant checks the versions. A download checks them too, because an upload may have replaced the
/// source meanwhile.
final class EntryValidity: Sendable {
  /// The last purge and the last upload before a load. After a later one, the result of the load
  /// must not be stored.
  struct LoadStart: Sendable {
    let generation: Int
    let upload: Int
  }

  private struct Change {
    var version: UInt64
    /// The upload number of the last uploaded image for this source, or 0.
    var upload = 0
  }

  private struct Versions {
    var changes = BoundedTable<CacheKey, Change>(limit: EntryValidity.limit)
    var lastUpload = 0
  }

  /// The maximum number of remembered changes, more than flights can span. The oldest is forgotten
  /// first.
  static let limit = 4_096
  private static let shards = 16

  private let purges: any PurgeList
  private let versions = Lock(Versions())
  /// Whether no change is recorded. Spares most disk hits the lock.
  private let isUnchanged = Atomic<Bool>(true)
  /// Locks between purges and writers, by key.
  private let gates = (0..<shards).map { _ in Lock(()) }

  init(purges: any PurgeList) { self.purges = purges }

  var generation: Int { purges.generation }

  /// Returns the start of a load. Read it before the first look-up.
  func loadStart(of key: CacheKey) -> LoadStart {
    writing(key) {
      LoadStart(
        generation: purges.generation, upload: versions.withLock { $0.lastUpload })
    }
  }

  // MARK: Checks

  /// Returns whether a variant is neither purged nor rendered from a replaced source.
  func isCurrent(_ variant: Variant) -> Bool {
    allows(variant.info.sourceVersion, of: variant.key.source)
      && !isPurged(variant.key, since: variant.info.generation)
  }

  /// Returns whether a source is neither replaced nor purged.
  func isCurrent(_ source: Source) -> Bool { isLatest(source) && !isPurged(source) }

  /// Returns whether an entry is neither purged nor, if it is a variant, of a replaced source.
  func isCurrent(_ entry: CacheEntryInfo, of key: CacheKey) -> Bool {
    guard !isPurged(key, since: entry.generation) else { return false }
    guard case .variant(let info) = entry.stored else { return true }
    return allows(info.sourceVersion, of: key.source)
  }

  /// Returns whether no other version of a source is known.
  func isLatest(_ source: Source) -> Bool { allows(source.version, of: source.key) }

  /// Returns whether a source was purged after its load began.
  func isPurged(_ source: Source) -> Bool { isPurged(source.key, since: source.generation) }

  /// Returns whether a purge after `generation` covers `key`.
  func isPurged(_ key: CacheKey, since generation: Int) -> Bool {
    purges.covers(key, generation: generation)
  }

  /// Returns whether an image was uploaded for this source after `start`.
  func isUploaded(_ source: CacheKey, since start: LoadStart) -> Bool {
    versions.withLock { $0.changes[source]?.upload ?? 0 } > start.upload
  }

  /// Returns whether no change is known that makes a version of `source` outdated.
  private func allows(_ version: UInt64, of source: @autoclosure () -> CacheKey) -> Bool {
    guard !isUnchanged.load(ordering: .acquiring) else { return true }
    let source = source()
    let current = versions.withLock { $0.changes[source]?.version }
    return current == nil || current == version
  }

  // MARK: Changes

  /// Runs `work`, which checks and stores and must not block. A purge that is published meanwhile
  /// waits for it.
  func writing<Result>(_ key: CacheKey, work: () -> Result) -> Result {
    gates[key.storedHash & (Self.shards - 1)].withLock { _ in work() }
  }

  /// Waits for the writers that checked before the last purge was published.
  func waitForWriters() {
    for gate in gates { gate.withLock { _ in } }
  }

  /// Records the current version of a source. Variants of other versions are outdated from now on.
  func recordChange(of source: CacheKey, to version: UInt64, isUpload: Bool = false) {
    versions.withLock { versions in
      var change = versions.changes[source] ?? Change(version: version)
      change.version = version
      if isUpload {
        versions.lastUpload += 1
        change.upload = versions.lastUpload
      }
      // A repeated change is remembered longer: a download of the previous bytes may be running.
      versions.changes.setNewest(change, for: source)
    }
    isUnchanged.store(false, ordering: .releasing)
  }

  /// Records a downloaded version where no source was cached. Does nothing if the source never
  /// changed.
  func recordLoad(of source: CacheKey, version: UInt64) {
    guard !isUnchanged.load(ordering: .acquiring) else { return }
    versions.withLock { $0.changes[source]?.version = version }
  }
}
