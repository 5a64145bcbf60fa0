// PurgeHistory: the purges of the stream, against which shared entries are checked. Pure.

import Model

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
    let hash = key.url.hashValue
    if let last = urls[hash], last > place { return false }
    var match = KeyMatch(key, filter: filter)
    return !others.contains { $0.value > place && match.isIn($0.key) }
      && !pending.cover(hash, &match)
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
