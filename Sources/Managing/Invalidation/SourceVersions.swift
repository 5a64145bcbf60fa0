// SourceVersions: prevents in-flight work from re-inserting variants of a replaced source.

import Model
import Platform
import Synchronization

/// The current versions of recently replaced sources.
///
/// Removing the old variants is not enough: a running flight may store one afterwards, and a disk
/// read may promote one to memory. So every store and every read of a variant checks this table. A
/// download checks it too, because an upload may have replaced the source meanwhile.
///
/// The table is bounded by `limit`, which is more changes than flights can span. The oldest change
/// is forgotten first.
final class SourceVersions: Sendable {
  private struct Entry {
    var version: UInt64
    /// The upload number of the last uploaded image for this source, or 0.
    var put = 0
  }

  private struct State {
    var entries = BoundedTable<CacheKey, Entry>(limit: SourceVersions.limit)
    var lastPut = 0
  }

  /// The maximum number of remembered changes.
  static let limit = 4_096

  private let state = Lock(State())
  /// Whether no change is recorded. Spares most disk hits the lock.
  private let isEmpty = Atomic<Bool>(true)

  /// Records the current version of a source. Variants of other versions are outdated from now on.
  ///
  /// - Parameter isPut: whether an operator uploaded the source.
  func change(_ source: CacheKey, to version: UInt64, isPut: Bool = false) {
    state.withLock { state in
      var entry = state.entries[source] ?? Entry(version: version)
      entry.version = version
      if isPut {
        state.lastPut += 1
        entry.put = state.lastPut
      }
      // A repeated change is remembered longer: a download of the previous bytes may be running.
      state.entries.setNewest(entry, for: source)
    }
    isEmpty.store(false, ordering: .releasing)
  }

  /// Records a downloaded version where no source was cached. Does nothing if the source never
  /// changed.
  func load(_ source: CacheKey, version: UInt64) {
    guard !isEmpty.load(ordering: .acquiring) else { return }
    state.withLock { $0.entries[source]?.version = version }
  }

  /// The number of the latest upload. A load reads it when it begins.
  var lastPut: Int { state.withLock { $0.lastPut } }

  /// Returns whether an image was uploaded for this source after the upload with `number`.
  func isPut(_ source: CacheKey, since number: Int) -> Bool {
    state.withLock { $0.entries[source]?.put ?? 0 } > number
  }

  /// Returns whether no change is known that makes a variant outdated.
  func allows(_ variant: Variant) -> Bool {
    allows(variant.info.sourceVersion, of: variant.key.source)
  }

  /// Returns whether no change is known that makes a source outdated.
  func allows(_ source: Source) -> Bool { allows(source.version, of: source.key) }

  /// Returns whether no change is known that makes a version of `source` outdated.
  func allows(_ version: UInt64, of source: @autoclosure () -> CacheKey) -> Bool {
    guard !isEmpty.load(ordering: .acquiring) else { return true }
    let source = source()
    let right = state.withLock { $0.entries[source]?.version }
    return right == nil || right == version
  }
}
