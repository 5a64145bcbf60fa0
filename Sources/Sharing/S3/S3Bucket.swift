// S3Bucket: entries of the shared tier as objects of a bucket.

import Model
import Platform
import Telemetry

/// A bucket in S3's protocol. One thread (`pictor-s3`) has all connections; callers suspend.
///
/// - A read ends within `fleet.s3.timeout`, a write within ten times of that.
/// - After a failure the breaker is open and requests fail at once (`RequestBreaker`). So a bucket that is away costs callers
///   at most one time-out an interval.
/// - Bodies are received into memory files, which count against a budget.
final class S3Bucket: SharedStore {
  /// The last second of the year 9999, which RFC 3339 can write.
  private static let lastSecond = 253_402_300_799

  let counters = S3Counters()
  private let configuration: S3Configuration
  private let thread: S3Thread

  /// Starts the thread. Nothing is sent yet.
  ///
  /// - Parameter budget: what received entries count against, until their last use.
  init(_ configuration: S3Configuration, budget: ByteBudget, log: Log) throws(SystemError) {
    self.configuration = configuration
    thread = try S3Thread(configuration, budget: budget, counters: counters, log: log)
    try thread.start()
  }

  deinit { thread.abandon() }

  var isReady: Bool { thread.queue.withLock { $0.isReady(now: .now) } }

  /// Whether requests are sent, and the last ones were answered.
  var isClosed: Bool { thread.queue.withLock { !$0.isStopped && $0.breaker.state == .closed } }

  /// Requests that wait to be sent.
  var waiting: Int { thread.queue.withLock { $0.count } }

  /// The largest entry in bytes.
  var entryLimit: Int { configuration.settings.entryLimit }

  func read(_ name: String) async -> SharedRead {
    let outcome = await send(.read, name, within: configuration.timeout)
    switch outcome {
    case .found(let region):
      counters.hits.add()
      counters.bytes.add(region.count)
      return .found(region)
    case .absent:
      counters.misses.add()
      return .absent
    case .timedOut:
      counters.timedOut.add()
      counters.unavailable.add()
      return .unavailable
    case .written, .failed:
      counters.unavailable.add()
      return .unavailable
    }
  }

  func write(_ name: String, head: [UInt8], body: FileRegion?, lifetime: Int) async -> Bool {
    let body = S3Body(head: head, region: body)
    guard body.count > 0, body.count <= entryLimit else {
      counters.dropped.add()
      return false
    }
    let expires = UnixTime(seconds: min(UnixTime.now.seconds + lifetime, Self.lastSecond))
    let outcome = await send(
      .write(body, expires: expires), name, within: configuration.writeTimeout)
    guard case .written = outcome else {
      if case .timedOut = outcome { counters.timedOut.add() }
      counters.dropped.add()
      return false
    }
    counters.stores.add()
    counters.bytes.add(body.count)
    return true
  }

  private func send(
    _ work: S3Request.Work, _ name: String, within time: Duration
  ) async -> S3Request.Outcome {
    await withCheckedContinuation { continuation in
      let request = S3Request(
        work: work, path: S3Request.path(of: name), deadline: .now + time,
        finish: { continuation.resume(returning: $0) })
      if !thread.send(request) { continuation.resume(returning: .failed) }
    }
  }

  /// The figures, as `/stats` shows them.
  var figures: BucketFigures {
    var figures = BucketFigures()
    figures.isReady = isClosed
    figures.hits = counters.hits.value
    figures.misses = counters.misses.value
    figures.refused = counters.refused.value
    figures.unavailable = counters.unavailable.value
    figures.timedOut = counters.timedOut.value
    figures.failures = counters.failures.value
    figures.stores = counters.stores.value
    figures.dropped = counters.dropped.value
    figures.waiting = waiting
    figures.bytes = counters.bytes.value
    return figures
  }

  /// Ends the thread. Requests in progress fail. Blocks until it has ended.
  func stop() {
    thread.beginStop()
    thread.join()
  }
}
