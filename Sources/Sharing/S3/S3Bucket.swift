// S3Bucket: entries of the shared tier as objects of a bucket.

import Model
import Platform
import Telemetry

/// A bucket in S3's protocol. One thread (`pictor-s3`) has all connections; callers suspend.
///
/// - A read ends within `fleet.s3.timeout`, a write within ten times of that.
/// - After a failure the breaker is open and requests fail at once (`Breaker`). So a bucket that is away costs callers
///   at most one time-out an interval.
/// - Bodies are received into memory files, which count against a budget.
final class S3Bucket: Sendable {
  /// What a read found.
  enum Entry: Sendable {
    /// The bytes of an entry, whole but not checked: the bucket and all who write to it are untrusted.
    case found(FileRegion)
    /// The bucket has no such entry.
    case absent
    /// The bucket is away, too slow or refuses, or the entry is too large, or memory has no room.
    case unavailable
  }

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

  /// Whether requests are sent: the breaker is not open. Never blocks.
  var isReady: Bool { thread.queue.withLock { $0.isReady(now: .now) } }

  /// Whether requests are sent, and the last ones were answered.
  var isClosed: Bool { thread.queue.withLock { $0.isClosed } }

  /// Requests that wait to be sent.
  var waiting: Int { thread.queue.withLock { $0.count } }

  /// The largest entry in bytes.
  var entryLimit: Int { configuration.settings.entryLimit }

  /// Reads an entry.
  func read(_ name: String) async -> Entry {
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

  /// Writes an entry, in place of an older one.
  ///
  /// - Parameters:
  ///   - name: letters, digits, `:`, `/` and `-`.
  ///   - lifetime: seconds after which the entry is useless.
  /// - Returns: whether the bucket has confirmed it.
  func write(_ name: String, _ bytes: [UInt8], lifetime: Int) async -> Bool {
    guard !bytes.isEmpty, bytes.count <= entryLimit else {
      counters.dropped.add()
      return false
    }
    let expires = UnixTime(seconds: min(UnixTime.now.seconds + lifetime, Self.lastSecond))
    let outcome = await send(
      .write(bytes, expires: expires), name, within: configuration.writeTimeout)
    guard case .written = outcome else {
      if case .timedOut = outcome { counters.timedOut.add() }
      counters.dropped.add()
      return false
    }
    counters.stores.add()
    counters.bytes.add(bytes.count)
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
  var figures: Figures {
    var figures = Figures(of: counters)
    figures.add(
      "ready", isClosed, "pictor_fleet_bucket_ready", "1 if the bucket is asked, 0 if it is away.")
    figures.add(
      "waiting", waiting, "pictor_fleet_bucket_waiting",
      "Requests to the bucket that wait to be sent.")
    return figures
  }

  /// Ends the thread. Requests in progress fail. Blocks until it has ended.
  func stop() {
    thread.beginStop()
    thread.join()
  }
}
