// BackgroundQueue: makes better variants after a quick answer, a few at a time and each once.

import Core

/// The queue of background work on variants. A pure state machine: the caller passes the time.
struct BackgroundQueue<Item: Sendable> {
  struct Work: Sendable {
    let key: CacheKey
    let item: Item
    /// How often it gave way to other work.
    var delays = 0
  }

  enum End: Sendable {
    /// Nothing is left to do, until it is asked for again.
    case done
    /// It gave way to other work and waits behind all others. `orElse` is called if it did so too
    /// often and is dropped.
    case delayed(orElse: @Sendable () -> Void)
    /// It is not tried again for `failureTime`.
    case failed
  }

  /// How often work may be delayed.
  static var maximumDelays: Int { 8 }
  /// How many seconds failed work is not tried again.
  static var failureTime: Int { 600 }

  private let atOnce: Int
  private let limit: Int
  private var waiting = Deque<Work>()
  private var outstanding: Set<CacheKey> = []
  private var running = 0
  private var failed: BoundedTable<CacheKey, UnixTime>

  /// - Parameters:
  ///   - atOnce: how many may run at a time, at least 1.
  ///   - limit: how many may wait, and how many failures are remembered.
  init(atOnce: Int, limit: Int) {
    self.atOnce = max(atOnce, 1)
    self.limit = limit
    failed = BoundedTable(limit: limit)
  }

  /// The number of running and waiting variants.
  var count: Int { outstanding.count }

  /// Returns whether work on a variant is pending or has failed recently.
  func knows(_ key: CacheKey, now: UnixTime) -> Bool {
    outstanding.contains(key) || failed[key].map { now < $0 } ?? false
  }

  /// Adds work unless its variant is known.
  ///
  /// - Returns: whether the variant has a place, and the work if the caller must start it now.
  mutating func add(_ item: Item, for key: CacheKey, now: UnixTime) -> (isKept: Bool, start: Work?)
  {
    guard !knows(key, now: now) else { return (true, nil) }
    guard waiting.count < limit else { return (false, nil) }
    outstanding.insert(key)
    let work = Work(key: key, item: item)
    guard running < atOnce else {
      waiting.append(work)
      return (true, nil)
    }
    running += 1
    return (true, work)
  }

  /// Ends work and returns the next to start.
  mutating func end(_ work: Work, _ end: End, now: UnixTime) -> Work? {
    if case .delayed = end, work.delays < Self.maximumDelays {
      var again = work
      again.delays += 1
      waiting.append(again)
    } else {
      outstanding.remove(work.key)
      switch end {
      case .done: break
      // In the same step: what happens after the work has left the queue counts.
      case .delayed(let orElse): orElse()
      case .failed:
        failed.setNewest(UnixTime(seconds: now.seconds + Self.failureTime), for: work.key)
      }
    }
    let next = waiting.popFirst()
    if next == nil { running -= 1 }
    return next
  }
}

/// Performs the work of a `BackgroundQueue`. No client waits for it, so none is charged.
final class BackgroundWorker<Item: Sendable>: Sendable {
  private let queue: Lock<BackgroundQueue<Item>>
  private let now: @Sendable () -> UnixTime

  init(atOnce: Int, limit: Int, now: @escaping @Sendable () -> UnixTime) {
    queue = Lock(BackgroundQueue(atOnce: atOnce, limit: limit))
    self.now = now
  }

  /// The number of running and waiting variants.
  var count: Int { queue.withLock { $0.count } }

  /// Returns whether work on a variant is pending or has failed recently. Never waits.
  func knows(_ key: CacheKey) -> Bool { queue.withLock { $0.knows(key, now: now()) } }

  /// Queues work unless its variant is known. Never blocks.
  ///
  /// - Parameter perform: does the work; the same for all items.
  /// - Returns: whether the variant has a place.
  @discardableResult
  func add(
    _ item: Item, for key: CacheKey,
    perform: @escaping @Sendable (Item) async -> BackgroundQueue<Item>.End
  ) -> Bool {
    let (isKept, start) = queue.withLock { $0.add(item, for: key, now: now()) }
    guard let start else { return isKept }
    ImagingAccounts.$current.withValue(nil) {
      _ = Task(priority: .utility) {
        var next: BackgroundQueue<Item>.Work? = start
        while let work = next {
          let end = await perform(work.item)
          next = queue.withLock { $0.end(work, end, now: now()) }
        }
      }
    }
    return isKept
  }
}
