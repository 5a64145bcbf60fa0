// PurgeOutbox: purges of this machine that wait for Redis. Pure.

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
