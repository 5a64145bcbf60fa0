// PurgeHistory: the purges of the stream, and those of this machine that it has not read there.

import Core

/// The last position of each purged scope, and this machine's purges that it has not read in the
/// stream.
///
/// URLs are kept by their hash: they are found at once, and take little memory. Two URLs with the
/// same hash are both refused, which costs a render.
struct PurgeHistory {
  /// The most purges. A full stream fits. Beyond it the history begins anew, and older entries are
  /// refused.
  static let limit = 2 * PurgeCommands.length
  /// The most prefixes, hosts and tags: each look-up compares its key with all of them. Beyond it
  /// as beyond `limit`.
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
  var own = OwnPurges()

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
  /// - Parameter own: the number of a purge of this machine, which is not pending any more; `nil`
  ///   for another's.
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
    if let own { self.own.read(scope, number: own) }
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
      && !own.cover(&match)
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

  mutating func isIn(_ scope: PurgeScope) -> Bool {
    if case .tag(let tag) = scope { return tags.contains(tag) }
    return scope.matches(key, filter: filter)
  }
}

/// The purges of this machine, each scope once: those that wait for Redis, and all until they are
/// read in the stream.
struct OwnPurges {
  /// The most scopes that wait. Beyond it one purge of everything replaces them.
  static let limit = 10_000

  private struct Purge {
    /// The number of the last purge; `nil` once that is read in the stream.
    var pending: Int?
    /// Whether Redis said that it is in the stream. It may lose it again.
    var isAcknowledged = false
    /// The number of the last purge that waits for Redis.
    var waiting: Int?
  }

  private var scopes: [PurgeScope: Purge] = [:]
  private var lastNumber = 0
  private(set) var waitingCount = 0

  /// Begins with purges of an earlier run, which wait.
  init(_ scopes: [PurgeScope] = []) {
    for scope in scopes { wait(scope, number: begin(scope)) }
  }

  /// The purges that wait, in the order of their numbers.
  var waiting: [(scope: PurgeScope, number: Int)] {
    scopes.compactMap { scope, purge in purge.waiting.map { (scope, $0) } }
      .sorted { $0.number < $1.number }
  }

  /// Notes a purge before it is applied. Returns its number, which is greater than that of earlier
  /// ones.
  mutating func begin(_ scope: PurgeScope) -> Int {
    lastNumber += 1
    scopes[scope] = Purge(pending: lastNumber, waiting: scopes[scope]?.waiting)
    return lastNumber
  }

  /// Lets a purge wait for Redis.
  mutating func wait(_ scope: PurgeScope, number: Int) {
    let isNew = scopes[scope]?.waiting == nil
    guard
      scope == .everything || scopes[.everything]?.waiting != nil
        || isNew && waitingCount >= Self.limit
    else {
      scopes[scope, default: Purge()].waiting = max(scopes[scope]?.waiting ?? 0, number)
      if isNew { waitingCount += 1 }
      return
    }
    // One of everything stands for all that wait, and for those before them.
    let last = max(waiting.last?.number ?? 0, number)
    update {
      $0.waiting = nil
      if let pending = $0.pending, pending <= last { $0.pending = nil }
    }
    // A newer one of everything stays as it is, whether Redis has it or not.
    let newer = scopes[.everything].flatMap { $0.pending == nil ? nil : $0 }
    scopes[.everything] = Purge(
      pending: newer?.pending ?? last, isAcknowledged: newer?.isAcknowledged ?? false,
      waiting: last)
    waitingCount = 1
  }

  /// Redis said that purges are in the stream. Those that came meanwhile still wait.
  mutating func acknowledge(_ purges: [(scope: PurgeScope, number: Int)]) {
    for (scope, number) in purges {
      update(scope) {
        if $0.waiting == number { $0.waiting = nil }
        if $0.pending == number { $0.isAcknowledged = true }
      }
    }
  }

  /// A purge was read in the stream. One of everything contains the earlier ones.
  mutating func read(_ scope: PurgeScope, number: Int) {
    func isRead(_ purge: inout Purge) {
      if let pending = purge.pending, pending <= number { purge.pending = nil }
    }
    if scope == .everything { update(isRead) } else { update(scope, isRead) }
  }

  /// The purges that Redis acknowledged and that are not read.
  var acknowledged: [(scope: PurgeScope, number: Int)] {
    scopes.compactMap { scope, purge in
      purge.isAcknowledged ? purge.pending.map { (scope, $0) } : nil
    }
  }

  /// Returns those of `purges` that are still not read: Redis has lost them.
  func missing(
    of purges: [(scope: PurgeScope, number: Int)]
  ) -> [(scope: PurgeScope, number: Int)] {
    purges.filter { scopes[$0.scope]?.pending == $0.number }
  }

  /// Whether a purge that is not read contains a key.
  func cover(_ match: inout KeyMatch) -> Bool {
    scopes.contains { $0.value.pending != nil && match.isIn($0.key) }
  }

  private mutating func update(_ change: (inout Purge) -> Void) {
    for scope in Array(scopes.keys) { update(scope, change) }
  }

  private mutating func update(_ scope: PurgeScope, _ change: (inout Purge) -> Void) {
    guard var purge = scopes[scope] else { return }
    let isWaiting = purge.waiting != nil
    change(&purge)
    if isWaiting, purge.waiting == nil { waitingCount -= 1 }
    scopes[scope] = purge.pending == nil && purge.waiting == nil ? nil : purge
  }
}
