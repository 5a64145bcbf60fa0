// PurgeHistory: the purges of the stream, and those of this machine that it has not read there.

import Core

/// The last position of each purged scope, and this machine's purges that it has not read in the stream.
///
/// URLs are kept by their hash: they are found at once, and take little memory. Two URLs with the same hash are both
/// refused, which costs a render.
struct PurgeHistory {
  /// The most purges. A full stream fits. Beyond it the history begins anew, and older entries are refused.
  static let limit = 2 * PurgeCommands.length
  /// The most prefixes, hosts and tags: each look-up compares its key with all of them. Beyond it as beyond `limit`.
  static let scanLimit = 1_000

  /// The epoch; empty before the first.
  private(set) var epoch = ""
  /// The last entry that is in the history and applied.
  private(set) var position = StreamPosition.start
  /// Entries with an older mark are refused: later purges may be unknown, or one was of everything.
  private(set) var floor = StreamPosition.start
  private var urls: [Int: StreamPosition] = [:]
  private var others: [PurgeScope: StreamPosition] = [:]
  /// This machine's purges from their beginning until they are read in the stream.
  var pending = PendingPurges()

  /// Begins with another epoch, or again with the same one. Own purges stay.
  mutating func begin(epoch: String, floor: StreamPosition) {
    self.epoch = epoch
    self.floor = floor
    position = .start
    urls = [:]
    others = [:]
  }

  /// Adds an entry of the stream. `advance` follows once it is applied.
  ///
  /// - Parameter own: the number of a purge of this machine, which is not pending any more; `nil` for another's.
  mutating func add(_ scope: PurgeScope, at place: StreamPosition, own: Int?) {
    switch scope {
    case .everything: forget(before: place)
    case .url(let url):
      if urls.count >= Self.limit { forget(before: place) }
      urls[url.text.hashValue] = place
    case .prefix, .host, .tag:
      if others.count >= Self.scanLimit { forget(before: place) }
      others[scope] = place
    }
    if let own { pending.read(scope, number: own) }
  }

  /// The entries up to this one are in the history and applied.
  mutating func advance(to place: StreamPosition) { position = max(position, place) }

  /// Whether an entry with this mark is covered by no purge.
  func allows(_ key: CacheKey, mark: SharedMark, filter: CacheKeyFilter) -> Bool {
    let place = StreamPosition(milliseconds: mark.milliseconds, number: mark.number)
    guard !epoch.isEmpty, mark.epoch == epoch, place >= floor else { return false }
    if let last = urls[key.url.hashValue], last > place { return false }
    var match = KeyMatch(key, filter: filter)
    return !others.contains { $0.value > place && match.isIn($0.key) }
      && !pending.cover(&match)
  }

  private mutating func forget(before place: StreamPosition) {
    urls = [:]
    others = [:]
    floor = max(floor, place)
  }
}

/// A key that is compared with many scopes: its tags are looked up once.
struct KeyMatch {
  private let key: CacheKey
  private let filter: CacheKeyFilter
  private lazy var tags = (try? SourceURL(parsing: key.url)).map { filter.tags(of: $0) } ?? []

  init(_ key: CacheKey, filter: CacheKeyFilter) {
    self.key = key
    self.filter = filter
  }

  /// Whether a scope contains the key.
  mutating func isIn(_ scope: PurgeScope) -> Bool {
    if case .tag(let tag) = scope { return tags.contains(tag) }
    return scope.matches(key, filter: filter)
  }
}

/// The purges that are not in the stream yet, each scope once. Beyond `limit` one purge of everything replaces them.
struct PurgeOutbox: Equatable {
  /// The most scopes.
  static let limit = 10_000

  private(set) var scopes: [PurgeScope] = []
  /// The last number of each scope, so that a delivery removes only what it delivered.
  private var numbers: [PurgeScope: Int] = [:]
  /// The number of the last purge.
  private(set) var lastNumber = 0

  init(_ scopes: [PurgeScope] = []) {
    for scope in scopes { add(scope) }
  }

  var isEmpty: Bool { scopes.isEmpty }

  /// Whether one purge of everything stands for all.
  var isCollapsed: Bool { numbers[.everything] != nil }

  /// Adds a purge. A repeated scope is delivered after its last addition.
  ///
  /// - Parameter number: the purge's number; greater for a later one. `nil` for the next one.
  mutating func add(_ scope: PurgeScope, number: Int? = nil) {
    let number = number ?? lastNumber + 1
    lastNumber = max(lastNumber, number)
    if isCollapsed || scope == .everything
      || (numbers[scope] == nil && scopes.count >= Self.limit)
    {
      scopes = [.everything]
      numbers = [.everything: lastNumber]
      return
    }
    if numbers[scope] == nil { scopes.append(scope) }
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

  var isEmpty: Bool { scopes.isEmpty }

  /// Adds a purge that begins.
  mutating func add(_ scope: PurgeScope, number: Int) {
    scopes[scope] = Purge(number: number)
  }

  /// Redis said that a purge is in the stream. It may lose it again.
  mutating func acknowledge(_ scope: PurgeScope, number: Int) {
    if scopes[scope]?.number == number { scopes[scope]?.isAcknowledged = true }
  }

  /// A purge was read in the stream. One of everything contains the earlier ones.
  mutating func read(_ scope: PurgeScope, number: Int) {
    guard scope != .everything else { return remove(upTo: number) }
    if let last = scopes[scope], last.number <= number { scopes[scope] = nil }
  }

  /// One purge of everything replaces all up to its number.
  mutating func collapse(upTo number: Int) {
    remove(upTo: number)
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

  /// Whether a purge contains a key.
  func cover(_ match: inout KeyMatch) -> Bool { scopes.keys.contains { match.isIn($0) } }

  private mutating func remove(upTo number: Int) {
    scopes = scopes.filter { $0.value.number > number }
  }
}
