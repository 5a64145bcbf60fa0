// S3Queue: the requests that wait for the bucket's thread, and the breaker that admits them. Pure.

import Platform

/// The requests that wait, bounded by number and bytes.
struct S3Queue {
  /// A request and how it was admitted.
  typealias Admitted = (request: S3Request, ticket: RequestBreaker.Ticket)

  var breaker: RequestBreaker
  private var reads = Deque<Admitted>()
  private var writes = Deque<Admitted>()
  /// Bytes of writes that wait or are on their way.
  private(set) var bytes = 0
  private(set) var isStopped = false
  private let countLimit: Int
  private let byteLimit: Int

  init(_ configuration: S3Configuration) {
    breaker = RequestBreaker(BackOff(interval: configuration.retryInterval))
    countLimit = configuration.queueLimit
    byteLimit = max(configuration.queueBytes, configuration.settings.entryLimit)
  }

  /// Whether a request would be sent.
  func isReady(now: ContinuousClock.Instant) -> Bool { !isStopped && breaker.isReady(now: now) }

  /// Requests that wait.
  var count: Int { reads.count + writes.count }

  /// Adds a request, or returns `false`: the breaker is open, the queue is full, or the bucket has ended.
  mutating func add(_ request: S3Request, now: ContinuousClock.Instant) -> Bool {
    let isFull =
      request.isRead
      ? reads.count >= countLimit
      : writes.count >= countLimit || request.count > byteLimit - bytes
    guard !isStopped, !isFull, let ticket = breaker.admit(now: now) else { return false }
    if request.isRead {
      reads.append((request, ticket))
    } else {
      writes.append((request, ticket))
      bytes += request.count
    }
    return true
  }

  /// Takes the next request. Reads come first, since requests wait for them.
  ///
  /// - Parameter mayWrite: whether a write may begin.
  mutating func next(mayWrite: Bool) -> Admitted? {
    reads.popFirst() ?? (mayWrite ? writes.popFirst() : nil)
  }

  /// A request has ended: its bytes are free. Returns whether the breaker has opened or closed.
  mutating func end(
    _ admitted: Admitted, _ verdict: RequestBreaker.Verdict, now: ContinuousClock.Instant
  ) -> Bool {
    bytes -= admitted.request.count
    return breaker.end(admitted.ticket, verdict, now: now)
  }

  /// Takes the requests that need not wait any longer: those whose time is over, and all while the breaker is open, except
  /// its probe. `end` has to follow for each.
  mutating func takeExpired(now: ContinuousClock.Instant) -> [Admitted] {
    let isClosed = breaker.state == .closed
    func isExpired(_ admitted: Admitted) -> Bool {
      isStopped || admitted.request.deadline <= now || !isClosed && admitted.ticket == .ordinary
    }
    let taken = reads.filter(isExpired) + writes.filter(isExpired)
    guard !taken.isEmpty else { return [] }
    reads.removeAll(where: isExpired)
    writes.removeAll(where: isExpired)
    return taken
  }

  /// The earliest deadline of those that wait.
  var deadline: ContinuousClock.Instant? {
    (reads.lazy.map(\.request.deadline) + writes.lazy.map(\.request.deadline)).min()
  }

  /// Admits no more requests. Those that wait expire.
  mutating func stop() { isStopped = true }
}
