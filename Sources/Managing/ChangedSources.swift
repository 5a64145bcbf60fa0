// ChangedSources: what keeps pictures of bytes that are gone from coming back.

import Model
import Platform
import Synchronization

/// Sources whose bytes were replaced lately, with the version that is right.
///
/// Removing what was made of the old ones is not enough: a flight that loaded them may store its variant afterwards, and
/// one that was being read from disk may be put into memory. Whoever stores or serves a variant asks here; so does whoever
/// has loaded a source, since a picture that an operator put in its place meanwhile is the right one. Bounded: of more
/// changes than flights can span, the oldest is forgotten.
final class ChangedSources: Sendable {
  private struct State {
    var versions: [CacheKey: UInt64] = [:]
    /// When a picture was put there last, as a number among all of them.
    var puts: [CacheKey: Int] = [:]
    var lastPut = 0
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
  ///
  /// - Parameter isPut: whether an operator put the bytes there.
  func change(_ source: CacheKey, to version: UInt64, isPut: Bool = false) {
    state.withLock { state in
      if isPut {
        state.lastPut += 1
        state.puts[source] = state.lastPut
      }
      guard state.versions.updateValue(version, forKey: source) == nil else { return }
      if state.order.count < Self.limit {
        state.order.append(source)
      } else {
        state.versions[state.order[state.oldest]] = nil
        state.puts[state.order[state.oldest]] = nil
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

  /// The number of the last picture that was put anywhere. To be asked when a load begins.
  var lastPut: Int { state.withLock { $0.lastPut } }

  /// Whether a picture was put there after the one with this number.
  func isPut(_ source: CacheKey, since number: Int) -> Bool {
    state.withLock { $0.puts[source] ?? 0 } > number
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
    let right = state.withLock { $0.versions[source] }
    return right == nil || right == version
  }
}
