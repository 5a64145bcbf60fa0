// OwnPurges: this machine's purges that wait for Redis, and those that it has not read in the stream. Pure.

import Model

/// The purges that are not in the stream yet, each scope once. Beyond `limit` one purge of everything replaces them.
struct PurgeOutbox: Equatable {
  /// The most scopes.
  static let limit = 10_000

  private(set) var scopes: [PurgeScope] = []
  private var known: Set<PurgeScope> = []
  /// The last number of each scope, so that a delivery removes only what it delivered.
  private var numbers: [PurgeScope: Int] = [:]
  /// The number of the last purge.
  private(set) var lastNumber = 0

  init(_ scopes: [PurgeScope] = []) {
    for scope in scopes { add(scope) }
  }

  var isEmpty: Bool { scopes.isEmpty }

  /// Whether one purge of everything stands for all.
  var isCollapsed: Bool { known.contains(.everything) }

  /// Adds a purge. A repeated scope is delivered after its last addition.
  ///
  /// - Parameter number: the purge's number; greater for a later one. `nil` for the next one.
  mutating func add(_ scope: PurgeScope, number: Int? = nil) {
    let number = number ?? lastNumber + 1
    lastNumber = max(lastNumber, number)
    if isCollapsed || scope == .everything
      || (!known.contains(scope) && scopes.count >= Self.limit)
    {
      scopes = [.everything]
      known = [.everything]
      numbers = [.everything: lastNumber]
      return
    }
    if known.insert(scope).inserted { scopes.append(scope) }
    numbers[scope] = max(numbers[scope] ?? 0, number)
  }

  /// Returns the oldest purges with their numbers.
  func oldest(_ count: Int) -> [(scope: PurgeScope, number: Int)] {
    scopes.prefix(count).map { ($0, numbers[$0] ?? 0) }
  }

  /// Removes purges that are in the stream, unless they were added again meanwhile.
  mutating func remove(_ delivered: [(scope: PurgeScope, number: Int)]) {
    var gone: Set<PurgeScope> = []
    for (scope, number) in delivered where numbers[scope] == number {
      gone.insert(scope)
      known.remove(scope)
      numbers[scope] = nil
    }
    scopes.removeAll { gone.contains($0) }
  }
}

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
