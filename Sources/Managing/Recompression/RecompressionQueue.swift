// RecompressionQueue: queues popular variants for recompression, one at a time and each once.

import Model
import Platform

/// The queue of variants to recompress. A pure state machine.
struct RecompressionQueue {
  /// A variant to recompress. Its bytes are looked up when its turn comes, so the queue holds none.
  struct Item: Equatable {
    let key: CacheKey
    /// The entity tag, which tells whether memory still has the same bytes.
    let etag: EntityTag
    /// How often a job for it gave way to others.
    var delays = 0
  }

  /// What becomes of an item.
  enum End: Equatable {
    /// Nothing is left to do.
    case done
    /// Its job gave way to others.
    case delayed
  }

  /// The maximum number of waiting items.
  static let limit = 256
  /// How often an item may be delayed.
  static let maximumDelays = 8

  private var waiting = Deque<Item>()
  private var outstanding: Set<CacheKey> = []
  private(set) var isRunning = false

  /// The number of running and waiting items.
  var count: Int { outstanding.count }

  /// Adds an item unless its key is known.
  ///
  /// - Returns: whether it has a place, and the item if the caller must start it now.
  mutating func add(_ item: Item) -> (isKept: Bool, start: Item?) {
    guard !outstanding.contains(item.key) else { return (true, nil) }
    guard waiting.count < Self.limit else { return (false, nil) }
    outstanding.insert(item.key)
    guard isRunning else {
      isRunning = true
      return (true, item)
    }
    waiting.append(item)
    return (true, nil)
  }

  /// Ends the running item and returns the next one to start. A delayed item waits behind all others.
  ///
  /// - Returns: also whether the item is dropped although it was not done.
  mutating func end(_ item: Item, _ end: End) -> (next: Item?, isDropped: Bool) {
    var isDropped = false
    if end == .delayed, item.delays < Self.maximumDelays {
      var again = item
      again.delays += 1
      waiting.append(again)
    } else {
      outstanding.remove(item.key)
      isDropped = end == .delayed
    }
    let next = waiting.popFirst()
    isRunning = next != nil
    return (next, isDropped)
  }
}
