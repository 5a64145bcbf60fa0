// DeferredAVIFQueue: the AVIFs that are to be made behind quicker answers, a few at a time and each once.

import Model

/// Which run, which wait and which failed. Pure: it is told what time it is.
struct DeferredAVIFQueue {
  /// An AVIF to make.
  struct Item: Equatable {
    let request: ImageRequest
    /// The last purge when it was asked for: a later one of the image means that nobody may want it any more.
    let generation: Int
  }

  /// Most that wait; those beyond are asked for again with a later request.
  static let limit = 1_024
  /// For how many seconds one that failed is not tried again.
  static let failureTime = 600

  private let atOnce: Int
  private var waiting: [Item] = []
  private var next = 0
  private var outstanding: Set<CacheKey> = []
  private var running = 0
  private var failed: [CacheKey: UnixTime] = [:]

  /// - Parameter atOnce: how many are made at the same time, at least 1.
  init(atOnce: Int) { self.atOnce = max(atOnce, 1) }

  /// How many run and wait.
  var count: Int { outstanding.count }

  /// Whether there is none yet of what a request wants, and no use in looking for it: it is being made, or failed.
  func knows(_ key: CacheKey, now: UnixTime) -> Bool {
    outstanding.contains(key) || hasFailed(key, now: now)
  }

  /// Takes in what is to be made, unless it is known; returns it where it is to be begun now.
  mutating func add(_ item: Item, now: UnixTime) -> Item? {
    let key = item.request.key
    guard !knows(key, now: now), outstanding.count - running < Self.limit else { return nil }
    outstanding.insert(key)
    guard running < atOnce else {
      waiting.append(item)
      return nil
    }
    running += 1
    return item
  }

  /// One has ended; returns the next to be begun.
  ///
  /// - Parameter isFailure: whether it is left alone for a while.
  mutating func end(_ item: Item, isFailure: Bool, now: UnixTime) -> Item? {
    outstanding.remove(item.request.key)
    if isFailure { fail(item.request.key, now: now) }
    guard next < waiting.count else {
      running -= 1
      (waiting, next) = ([], 0)
      return nil
    }
    let item = waiting[next]
    next += 1
    // What was begun makes room once it is as much as what waits.
    if next * 2 >= waiting.count {
      waiting.removeFirst(next)
      next = 0
    }
    return item
  }

  private func hasFailed(_ key: CacheKey, now: UnixTime) -> Bool {
    failed[key].map { now < $0 } ?? false
  }

  private mutating func fail(_ key: CacheKey, now: UnixTime) {
    if failed.count >= Self.limit { failed = failed.filter { now < $0.value } }
    // More failures than that are not of single images, so any may be tried again.
    if failed.count >= Self.limit { failed = [:] }
    failed[key] = UnixTime(seconds: now.seconds + Self.failureTime)
  }
}
