// DeferredAVIFQueue: queues AVIFs for background encoding, a few at a time and each once.

import Model
import Platform

/// The queue of AVIFs to encode in the background. A pure state machine: the caller passes the
/// time.
struct DeferredAVIFQueue {
  /// An AVIF to encode.
  struct Item: Equatable {
    let request: ImageRequest
    /// The purge generation at the time of the request. A later purge of the image cancels the
    /// item.
    let generation: Int
  }

  /// The maximum number of queued items. Further items are dropped until the next request asks
  /// again.
  static let limit = 1_024
  /// How many seconds a failed AVIF is not tried again.
  static let failureTime = 600

  private let atOnce: Int
  private var waiting = Deque<Item>()
  private var outstanding: Set<CacheKey> = []
  private var running = 0
  private var failed: [CacheKey: UnixTime] = [:]

  /// - Parameter atOnce: the number of AVIFs to encode at a time, at least 1.
  init(atOnce: Int) { self.atOnce = max(atOnce, 1) }

  /// The number of running and queued items.
  var count: Int { outstanding.count }

  /// Returns whether the AVIF of `key` is pending or has failed recently. It is in neither cache
  /// tier then.
  func knows(_ key: CacheKey, now: UnixTime) -> Bool {
    outstanding.contains(key) || hasFailed(key, now: now)
  }

  /// Adds an item unless it is known. Returns the item if the caller must start it now.
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

  /// Ends an item and returns the next one to start.
  ///
  /// - Parameter isFailure: whether to refuse the item for `failureTime`.
  mutating func end(_ item: Item, isFailure: Bool, now: UnixTime) -> Item? {
    outstanding.remove(item.request.key)
    if isFailure { fail(item.request.key, now: now) }
    let next = waiting.popFirst()
    if next == nil { running -= 1 }
    return next
  }

  private func hasFailed(_ key: CacheKey, now: UnixTime) -> Bool {
    failed[key].map { now < $0 } ?? false
  }

  private mutating func fail(_ key: CacheKey, now: UnixTime) {
    if failed.count >= Self.limit { failed = failed.filter { now < $0.value } }
    // This many failures do not concern single images, so every AVIF may be tried again.
    if failed.count >= Self.limit { failed = [:] }
    failed[key] = UnixTime(seconds: now.seconds + Self.failureTime)
  }
}
