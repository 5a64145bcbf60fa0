// SourceVersions: what keeps images of bytes that are gone from coming back.

import Model
import Platform
import Synchronization

/// Sources whose bytes were replaced lately, with the version that is right.
///
/// Removing what was made of the old ones is not enough: a flight that loaded them may store its variant afterwards, and
/// one that was being read from disk may be put into memory. Whoever stores or serves a variant asks here; so does whoever
/// has loaded a source, since an image that an operator put in its place meanwhile is the right one. Bounded: of more
/// changes than flights can span, the oldest is forgotten.
final class SourceVersions: Sendable {
  private struct Entry {
    var version: UInt64
    /// When an image was put there last, as a number among all of them; 0: never.
    var put = 0
    /// Its place in `places`.
    var place = 0
  }

  private struct State {
    var entries: [CacheKey: Entry] = [:]
    /// Sources in the order they changed; one that changed again may have left an older place to nobody.
    var places: [CacheKey] = []
    var oldest = 0
    var lastPut = 0

    /// The place of a source that changes now; where all are taken another has to leave.
    ///
    /// Whoever changed lately keeps its place, so that one source that changes all the time forgets no other.
    mutating func place(of source: CacheKey) -> Int {
      let newest = (oldest + places.count - 1) % max(places.count, 1)
      if let place = entries[source]?.place,
        (newest - place + places.count) % places.count < SourceVersions.limit / 2
      {
        return place
      }
      guard places.count >= SourceVersions.limit else {
        places.append(source)
        return places.count - 1
      }
      let place = oldest
      oldest = (oldest + 1) % places.count
      if entries[places[place]]?.place == place { entries[places[place]] = nil }
      places[place] = source
      return place
    }
  }

  /// Most changes remembered.
  static let limit = 4_096

  private let state = Lock(State())
  /// Whether there are none, which costs a hit from disk nothing to ask.
  private let isEmpty = Atomic<Bool>(true)

  /// From now on only variants of this version are right.
  ///
  /// - Parameter isPut: whether an operator put the bytes there.
  func change(_ source: CacheKey, to version: UInt64, isPut: Bool = false) {
    state.withLock { state in
      var entry = state.entries[source] ?? Entry(version: version)
      entry.version = version
      if isPut {
        state.lastPut += 1
        entry.put = state.lastPut
      }
      // The last change counts: what loaded the bytes before it may be under way now, however long ago the first was.
      entry.place = state.place(of: source)
      state.entries[source] = entry
    }
    isEmpty.store(false, ordering: .releasing)
  }

  /// Bytes of this version were loaded, in place of none: where others were replaced before, these are right now.
  func load(_ source: CacheKey, version: UInt64) {
    guard !isEmpty.load(ordering: .acquiring) else { return }
    state.withLock { $0.entries[source]?.version = version }
  }

  /// The number of the last image that was put anywhere. To be asked when a load begins.
  var lastPut: Int { state.withLock { $0.lastPut } }

  /// Whether an image was put there after the one with this number.
  func isPut(_ source: CacheKey, since number: Int) -> Bool {
    state.withLock { $0.entries[source]?.put ?? 0 } > number
  }

  /// Whether a variant was made of bytes that are still right, as far as is known.
  func allows(_ variant: Variant) -> Bool {
    allows(variant.info.sourceVersion, of: variant.key.source)
  }

  /// Whether bytes are still right, as far as is known.
  func allows(_ source: Source) -> Bool { allows(source.version, of: source.key) }

  private func allows(_ version: UInt64, of source: @autoclosure () -> CacheKey) -> Bool {
    guard !isEmpty.load(ordering: .acquiring) else { return true }
    let source = source()
    let right = state.withLock { $0.entries[source]?.version }
    return right == nil || right == version
  }
}
