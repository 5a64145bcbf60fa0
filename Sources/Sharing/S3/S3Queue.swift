// S3Queue: the requests that wait for the bucket's thread, and the breaker that admits them. Pure.

import Platform

/// The requests that wait, bounded by number and bytes.
struct S3Queue {
  private(set) var breaker = Breaker()
  private var reads = Deque<S3Request>()
  private var writes = Deque<S3Request>()
  /// Bytes of writes that wait or are on their way.
  private var bytes = 0
  private var lastNumber = 0
  private(set) var isStopped = false
  private let pauses: Backoff
  private let countLimit: Int
  private let byteLimit: Int

  init(_ configuration: S3Configuration) {
    pauses = configuration.pauses
    countLimit = configuration.queueLimit
    byteLimit = max(configuration.queueBytes, configuration.settings.entryLimit)
  }

  /// Whether a request would be sent.
  func isReady(now: ContinuousClock.Instant) -> Bool { !isStopped && !breaker.refuses(now: now) }

  /// Whether the breaker is closed.
  var isClosed: Bool { !isStopped && breaker.openUntil == nil }

  /// Requests that wait.
  var count: Int { reads.count + writes.count }

  /// Adds a request, or returns `false`: the breaker is open, the queue is full, or the bucket has ended.
  mutating func add(_ request: S3Request, now: ContinuousClock.Instant) -> Bool {
    let isFull =
      request.isRead
      ? reads.count >= countLimit
      : writes.count >= countLimit || request.count > byteLimit - bytes
    lastNumber += 1
    guard !isStopped, !isFull, breaker.admit(lastNumber, now: now) else { return false }
    var request = request
    request.number = lastNumber
    if request.isRead { reads.append(request) } else { writes.append(request) }
    bytes += request.count
    return true
  }

  /// Takes the next request. Reads come first, since requests wait for them.
  ///
  /// - Parameter mayWrite: whether a write may begin.
  mutating func next(mayWrite: Bool) -> S3Request? {
    reads.popFirst() ?? (mayWrite ? writes.popFirst() : nil)
  }

  /// A request has ended: its bytes are free.
  mutating func end(_ request: S3Request, _ outcome: Breaker.Outcome, now: ContinuousClock.Instant)
  {
    bytes -= request.count
    _ = breaker.end(request.number, outcome, pauses: pauses, now: now)
  }

  /// Takes the requests that need not wait any longer: those whose time is over, and all while the breaker is open, except
  /// its probe. `end` has to follow for each.
  mutating func takeExpired(now: ContinuousClock.Instant) -> [S3Request] {
    let (isClosed, probe) = (isClosed, breaker.probe)
    func isExpired(_ request: S3Request) -> Bool {
      isStopped || request.deadline <= now || !isClosed && request.number != probe
    }
    let taken = reads.filter(isExpired) + writes.filter(isExpired)
    guard !taken.isEmpty else { return [] }
    reads.removeAll(where: isExpired)
    writes.removeAll(where: isExpired)
    return taken
  }

  /// The earliest deadline of those that wait.
  var deadline: ContinuousClock.Instant? {
    (reads.lazy.map(\.deadline) + writes.lazy.map(\.deadline)).min()
  }

  /// Admits no more requests. Those that wait expire.
  mutating func stop() { isStopped = true }
}
