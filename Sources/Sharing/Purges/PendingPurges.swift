// PendingPurges: this machine's purges that it has not read in the stream. Pure.

import Model

/// The purges of this machine from their beginning until they are read in the stream, each scope once.
struct PendingPurges {
  private struct Purge {
    /// The last number of the scope.
    var number: Int
    /// Whether Redis said that it is in the stream.
    var isAcknowledged = false
  }

  private var scopes: [PurgeScope: Purge] = [:]
  /// How many scopes are URLs with this hash.
  private var hashes: [Int: Int] = [:]

  var isEmpty: Bool { scopes.isEmpty }

  /// Adds a purge that begins.
  mutating func add(_ scope: PurgeScope, number: Int) {
    if scopes.updateValue(Purge(number: number), forKey: scope) == nil, case .url(let url) = scope {
      hashes[url.text.hashValue, default: 0] += 1
    }
  }

  /// Redis said that a purge is in the stream. It may lose it again.
  mutating func acknowledge(_ scope: PurgeScope, number: Int) {
    if scopes[scope]?.number == number { scopes[scope]?.isAcknowledged = true }
  }

  /// A purge was read in the stream. One of everything contains the earlier ones.
  mutating func read(_ scope: PurgeScope, number: Int) {
    guard scope != .everything else { return remove { $0.number <= number } }
    if let last = scopes[scope], last.number <= number { remove(scope) }
  }

  /// One purge of everything replaces all up to its number.
  mutating func collapse(upTo number: Int) {
    remove { $0.number <= number }
    add(.everything, number: number)
  }

  /// The purges that Redis acknowledged.
  var acknowledged: [(scope: PurgeScope, number: Int)] {
    scopes.filter(\.value.isAcknowledged).map { ($0.key, $0.value.number) }
  }

  /// Returns those of `purges` that are still not read: Redis has lost them.
  func missing(
    of purges: [(scope: PurgeScope, number: Int)]
  ) -> [(scope: PurgeScope, number: Int)] {
    purges.filter { scopes[$0.scope]?.number == $0.number }
  }

  /// Whether a purge contains a key, whose URL has this hash.
  func cover(_ hash: Int, _ match: inout KeyMatch) -> Bool {
    if hashes[hash] != nil { return true }
    return scopes.keys.contains { scope in
      if case .url = scope { false } else { match.isIn(scope) }
    }
  }

  private mutating func remove(where isGone: (Purge) -> Bool) {
    for scope in scopes.filter({ isGone($0.value) }).keys { remove(scope) }
  }

  private mutating func remove(_ scope: PurgeScope) {
    guard scopes.removeValue(forKey: scope) != nil, case .url(let url) = scope else { return }
    let hash = url.text.hashValue
    hashes[hash] = hashes[hash].flatMap { $0 > 1 ? $0 - 1 : nil }
  }
}
