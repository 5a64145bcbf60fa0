// PurgeHistory: the purges of the stream, against which shared entries are checked. Pure.

import Model

/// The last position of each purged scope, and this machine's purges that are not in the stream yet.
struct PurgeHistory {
  /// The most scopes. Beyond it the history begins anew, and older entries are refused.
  static let limit = 100_000

  /// The epoch; empty before the first.
  private(set) var epoch = ""
  /// The last entry that is in the history.
  private(set) var position = StreamPosition.start
  /// Entries with an older mark are refused: later purges may be unknown.
  private(set) var floor = StreamPosition.start
  private var urls: [String: StreamPosition] = [:]
  private var others: [PurgeScope: StreamPosition] = [:]
  private var pending: [PurgeScope: Int] = [:]

  /// Begins with another epoch, or again with the same one. Own purges stay.
  mutating func begin(epoch: String, floor: StreamPosition) {
    self.epoch = epoch
    self.floor = floor
    position = .start
    urls = [:]
    others = [:]
  }

  /// Notes a purge of this machine that is not in the stream yet.
  mutating func addPending(_ scope: PurgeScope, number: Int) { pending[scope] = number }

  /// Adds an entry of the stream.
  ///
  /// - Parameter own: the number of a purge of this machine, which is not pending any more; `nil` for another's.
  mutating func add(_ scope: PurgeScope, at place: StreamPosition, own: Int?) {
    if urls.count + others.count >= Self.limit {
      urls = [:]
      others = [:]
      floor = place
    }
    if case .url(let url) = scope { urls[url.text] = place } else { others[scope] = place }
    position = max(position, place)
    guard let own else { return }
    if scope == .everything { pending = pending.filter { $0.value > own } }
    if let number = pending[scope], number <= own { pending[scope] = nil }
  }

  /// Skips an entry that purges nothing.
  mutating func skip(to place: StreamPosition) { position = max(position, place) }

  /// Whether an entry with this mark is covered by no purge.
  func allows(_ key: CacheKey, mark: SharedMark, filter: CacheKeyFilter) -> Bool {
    let place = StreamPosition(milliseconds: mark.milliseconds, number: mark.number)
    guard !epoch.isEmpty, mark.epoch == epoch, place >= floor else { return false }
    if let last = urls[key.url], last > place { return false }
    return !others.contains { $0.value > place && $0.key.matches(key, filter: filter) }
      && !pending.contains { $0.key.matches(key, filter: filter) }
  }
}
