// ChangedSources: what keeps pictures of bytes that are gone from coming back.

import Model
import Platform
import Synchronization

/// Sources whose bytes were replaced lately, with the version that is right.
///
/// Removing what was made of the old ones is not enough: a flight that loaded them may store its variant afterwards, and
/// one that was being read from disk may be put into memory. Whoever stores or serves a variant asks here. Bounded: of
/// more changes than flights can span, the oldest is forgotten.
final class ChangedSources: Sendable {
  private struct State {
    var versions: [CacheKey: UInt64] = [:]
    /// In the order of the first change.
    var order: [CacheKey] = []
    var oldest = 0
  }

  /// Most changes remembered.
  static let limit = 4_096

  private let state = Lock(State())
  /// Whether there are none, which costs a hit from disk nothing to ask.
  private let isEmpty = Atomic<Bool>(true)

  /// From now on only variants of this version are right.
  func change(_ source: CacheKey, to version: UInt64) {
    state.withLock { state in
      guard state.versions.updateValue(version, forKey: source) == nil else { return }
      if state.order.count < Self.limit {
        state.order.append(source)
      } else {
        state.versions[state.order[state.oldest]] = nil
        state.order[state.oldest] = source
        state.oldest = (state.oldest + 1) % Self.limit
      }
    }
    isEmpty.store(false, ordering: .releasing)
  }

  /// Bytes of this version were loaded, in place of none: where others were replaced before, these are right now.
  func load(_ source: CacheKey, version: UInt64) {
    guard !isEmpty.load(ordering: .acquiring) else { return }
    state.withLock { state in
      if state.versions[source] != nil { state.versions[source] = version }
    }
  }

  /// Whether a variant was made of bytes that are still right, as far as is known.
  func allows(_ variant: Variant) -> Bool {
    guard !isEmpty.load(ordering: .acquiring) else { return true }
    let source = variant.key.source
    let version = state.withLock { $0.versions[source] }
    return version == nil || version == variant.info.sourceVersion
  }
}
