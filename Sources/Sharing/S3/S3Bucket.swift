// S3Bucket: entries of the shared tier as objects of a bucket.

import Core
import Glibc
import Requesting

/// A bucket in S3's protocol. Requests are sent on threads of their own (`pictor-s3`), each with a
/// connection that is kept; callers suspend.
///
/// - A read ends within five times `fleet.timeout`. A write may take ten times as long; one that no
///   thread has taken by then fails when a thread takes it.
/// - After a failure the breaker is open and requests fail at once (`Breaker`). So a bucket that is
///   away costs callers at most one time-out an interval.
/// - Bodies are received into memory files, which count against a budget.
final class S3Bucket: Sendable {
  private struct State {
    var breaker = Breaker()
    /// The number of the last request that was sent, for the breaker.
    var lastNumber = 0
    /// Requests that no thread has taken yet.
    var waiting = 0
    var isStopped = false
    /// Handles without a request: each thread takes one.
    var idle: [MultiHandle]
  }

  /// The last second of the year 9999, which RFC 3339 can write.
  private static let lastSecond = 253_402_300_799

  let counters = S3Counters()
  private let configuration: S3Configuration
  private let budget: ByteBudget
  private let log: Log
  private let handles: [MultiHandle]
  private let state: Lock<State>
  private let problem = Lock(ProblemLog())
  /// Reads come first, since requests wait for them, and writes leave them half of the threads.
  /// A write that waits for a thread beyond its time fails when it gets one.
  private let threads: BlockingThreads

  /// Prepares connections. Nothing is sent yet.
  ///
  /// - Parameter budget: what received entries count against, until their last use.
  init(_ configuration: S3Configuration, budget: ByteBudget, log: Log) throws(SystemError) {
    self.configuration = configuration
    self.budget = budget
    self.log = log
    do throws(ImageError) {
      handles = try (0..<configuration.concurrency).map { _ throws(ImageError) in
        try MultiHandle(idleConnectionLimit: 1)
      }
    } catch {
      throw SystemError(ENOMEM)
    }
    state = Lock(State(idle: handles))
    threads = BlockingThreads(
      name: "pictor-s3", threads: configuration.concurrency,
      background: configuration.concurrency / 2, queueLimit: configuration.readLimit)
  }

  /// Whether requests are sent: the breaker is not open. Never blocks.
  var isReady: Bool { state.withLock { !$0.isStopped && !$0.breaker.refuses(now: .now) } }

  /// Requests that wait to be sent.
  var waiting: Int { state.withLock { $0.waiting } }

  /// The largest entry in bytes.
  var entryLimit: Int { configuration.settings.entryLimit }

  /// Reads an entry. Its bytes are whole but not checked: the bucket and all who write to it are
  /// untrusted.
  func read(_ name: String) async -> S3Outcome {
    let outcome = await send(.read, name, within: configuration.timeout)
    switch outcome {
    case .found(let region):
      counters.hits.add()
      counters.bytes.add(region.count)
    case .absent: counters.misses.add()
    case .timedOut, .written, .failed: counters.unavailable.add()
    }
    return outcome
  }

  /// Writes an entry, in place of an older one.
  ///
  /// - Parameters:
  ///   - name: letters, digits, `:`, `/` and `-`.
  ///   - lifetime: seconds after which the entry is useless.
  /// - Returns: whether the bucket has confirmed it.
  func write(_ name: String, _ bytes: [UInt8], lifetime: Int) async -> Bool {
    var outcome = S3Outcome.failed
    if !bytes.isEmpty, bytes.count <= entryLimit {
      let expires = UnixTime(seconds: min(UnixTime.now.seconds + lifetime, Self.lastSecond))
      outcome = await send(
        .write(bytes, expires: expires), name, within: configuration.writeTimeout)
    }
    guard case .written = outcome else {
      counters.dropped.add()
      return false
    }
    counters.stores.add()
    counters.bytes.add(bytes.count)
    return true
  }

  /// The figures, as `/stats` shows them.
  var figures: Figures {
    var figures = Figures(of: counters)
    figures.add(
      "ready", state.withLock { !$0.isStopped && $0.breaker.openUntil == nil },
      "pictor_fleet_bucket_ready", "1 if the bucket is asked, 0 if it is away.")
    figures.add(
      "waiting", waiting, "pictor_fleet_bucket_waiting",
      "Requests to the bucket that wait to be sent.")
    return figures
  }

  /// Sends no more requests. Those in progress fail. Blocks until the threads have ended: curl must
  /// not use TLS while the process exits.
  func stop() {
    state.withLock { $0.isStopped = true }
    for handle in handles { handle.wakeUp() }
    _ = threads.finish(within: .seconds(10))
  }

  // MARK: Requests

  private func send(
    _ work: S3Request.Work, _ name: String, within time: Duration
  ) async -> S3Outcome {
    guard isReady else { return .failed }
    let request = S3Request(work: work, path: S3Request.path(of: name), deadline: .now + time)
    let outcome = await withCheckedContinuation { continuation in
      state.withLock { $0.waiting += 1 }
      // `VariantTier` bounds writes.
      let isAdded = threads.add(request.isRead ? .urgent : .background, isBounded: request.isRead) {
        [self] in
        continuation.resume(returning: perform(request))
      }
      if !isAdded {
        state.withLock { $0.waiting -= 1 }
        continuation.resume(returning: .failed)
      }
    }
    if case .timedOut = outcome { counters.timedOut.add() }
    return outcome
  }

  /// Sends a request, unless the breaker has opened meanwhile, and waits for the response. Blocks.
  private func perform(_ request: S3Request) -> S3Outcome {
    let admitted = state.withLock { state -> (number: Int, handle: MultiHandle)? in
      state.waiting -= 1
      state.lastNumber += 1
      guard !state.isStopped, request.deadline > .now,
        state.breaker.admit(state.lastNumber, now: .now), let handle = state.idle.popLast()
      else { return nil }
      return (state.lastNumber, handle)
    }
    guard let (number, handle) = admitted else { return .failed }
    let (outcome, verdict, detail) = exchange(request, on: handle)
    if verdict == .failure { counters.failures.add() }
    let (was, now) = state.withLock { state in
      let before = state.breaker.openUntil
      _ = state.breaker.end(number, verdict, pauses: configuration.pauses, now: .now)
      state.idle.append(handle)
      return (before != nil, state.breaker.openUntil != nil)
    }
    if !was, now { problem.withLock { $0.failed(detail ?? "it does not answer", log) } }
    if was, !now { problem.withLock { $0.ended(log) } }
    return outcome
  }

  private func exchange(_ request: S3Request, on handle: MultiHandle) -> S3Transfer.End {
    do throws(ImageError) {
      let transfer = try S3Transfer(request, configuration, budget: budget)
      let code = try handle.run(
        transfer.exchange,
        until: { state.withLock { $0.isStopped } ? .now : request.deadline })
      if let code { return transfer.end(code) }
      return state.withLock { $0.isStopped }
        ? (.failed, .nothing, nil) : (.timedOut, .failure, "no answer in time")
    } catch {
      return (.failed, .failure, "curl failed")
    }
  }
}

/// Logs that the bucket is away and back, and the same reason at most once a minute: where only
/// some requests are refused, the breaker opens again and again.
private struct ProblemLog {
  private static let pause = Duration.seconds(60)
  private var last: (detail: String, time: ContinuousClock.Instant)?
  private var isLogged = false

  mutating func failed(_ detail: String, _ log: Log) {
    if let last, last.detail == detail, last.time.duration(to: .now) < Self.pause { return }
    last = (detail, .now)
    isLogged = true
    log.warning("S3 is away", fields: ["detail": .string(detail)])
  }

  mutating func ended(_ log: Log) {
    guard isLogged else { return }
    isLogged = false
    log.info("S3 is back", fields: [:])
  }
}

/// The configuration of an `S3Bucket`.
public struct S3Configuration: Sendable {
  let settings: SharedBucketSettings
  /// What requests are signed with; `nil`: they are not signed.
  let credentials: AWSCredentials?
  /// The pause after a first failure.
  public var retryInterval = FleetSettings().retryInterval
  /// The most requests at one time, and connections that are kept.
  var concurrency = 8
  /// The most reads that wait.
  var readLimit = 256

  /// The URL of the prefix, to which the name of an object is appended.
  let base: String
  /// The path of `base`, as it is sent and signed.
  let basePath: String
  let host: String

  /// Creates a configuration.
  ///
  /// - Throws: `ImageError` if endpoint, bucket and prefix make no URL.
  public init(
    _ settings: SharedBucketSettings, credentials: AWSCredentials?
  ) throws(ImageError) {
    self.settings = settings
    self.credentials = credentials
    // A prefix may be empty; an object has a name.
    let url = try settings.access.url(
      of: SourceURL(parsing: "s3://\(settings.name)/\(settings.prefix)x"))
    base = String(url.text.dropLast())
    basePath = String(url.path.dropLast())
    host = url.authority
  }

  /// How long no request is sent after a failure: up to eight times as long, and never shorter than
  /// the interval, which bounds the time-outs of callers.
  var pauses: Backoff { Backoff(retryInterval, longest: retryInterval * 8, jitter: 1...1.25) }
  /// The longest wait for a read.
  var timeout: Duration { settings.timeout }
  /// The longest wait for a write. The request that made the entry does not wait, and a large entry
  /// takes its time.
  var writeTimeout: Duration { settings.timeout * 10 }

  var signer: AWSSigner? { credentials.map { AWSSigner($0, region: settings.access.region) } }
}
