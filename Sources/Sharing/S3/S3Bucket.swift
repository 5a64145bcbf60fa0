// S3Bucket: entries of the shared tier as objects of a bucket.

import CCurl
import Core
import Glibc
import Requesting

/// A bucket in S3's protocol. One thread (`pictor-s3`) has all connections; callers suspend.
///
/// - A read ends within five times `fleet.timeout`, a write within ten times of that.
/// - After a failure the breaker is open and requests fail at once (`Breaker`). So a bucket that is
///   away costs callers at most one time-out an interval.
/// - Bodies are received into memory files, which count against a budget.
final class S3Bucket: Sendable {
  /// The last second of the year 9999, which RFC 3339 can write.
  private static let lastSecond = 253_402_300_799

  let loop: S3Loop
  private let thread: Lock<OwnThread?>

  /// Starts the thread, which ends with `stop` or with this object. Nothing is sent yet.
  ///
  /// - Parameter budget: what received entries count against, until their last use.
  init(_ configuration: S3Configuration, budget: ByteBudget, log: Log) throws(SystemError) {
    let loop = try S3Loop(configuration, budget: budget, log: log)
    self.loop = loop
    thread = Lock(try OwnThread(name: "pictor-s3", rank: .work) { loop.run() })
  }

  deinit {
    loop.stop()
    thread.withLock { $0.take() }?.detach()
  }

  var counters: S3Counters { loop.counters }

  /// Whether requests are sent: the breaker is not open. Never blocks.
  var isReady: Bool { loop.queue.withLock { $0.isReady(now: .now) } }

  /// Requests that wait to be sent.
  var waiting: Int { loop.queue.withLock { $0.count } }

  /// The largest entry in bytes.
  var entryLimit: Int { loop.configuration.settings.entryLimit }

  /// Reads an entry. Its bytes are whole but not checked: the bucket and all who write to it are
  /// untrusted.
  func read(_ name: String) async -> S3Outcome {
    let outcome = await send(.read, name, within: loop.configuration.timeout)
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
        .write(bytes, expires: expires), name, within: loop.configuration.writeTimeout)
    }
    guard case .written = outcome else {
      counters.dropped.add()
      return false
    }
    counters.stores.add()
    counters.bytes.add(bytes.count)
    return true
  }

  private func send(_ work: S3Request.Work, _ name: String, within time: Duration) async
    -> S3Outcome
  {
    let outcome = await withCheckedContinuation { continuation in
      loop.add(
        S3Request(
          work: work, path: S3Request.path(of: name), deadline: .now + time,
          finish: { continuation.resume(returning: $0) }))
    }
    if case .timedOut = outcome { counters.timedOut.add() }
    return outcome
  }

  /// The figures, as `/stats` shows them.
  var figures: Figures {
    var figures = Figures(of: counters)
    figures.add(
      "ready", loop.queue.withLock { $0.isClosed }, "pictor_fleet_bucket_ready",
      "1 if the bucket is asked, 0 if it is away.")
    figures.add(
      "waiting", waiting, "pictor_fleet_bucket_waiting",
      "Requests to the bucket that wait to be sent.")
    return figures
  }

  /// Ends the thread. Requests in progress fail. Blocks until it has ended.
  func stop() {
    loop.stop()
    thread.withLock { $0.take() }?.join()
  }
}

/// What the thread of a bucket does. It has no reference to the bucket, whose end is its own.
final class S3Loop: @unchecked Sendable {
  // Sound as Sendable: `queue` is a lock, and `transfers` and `problem` belong to the thread.

  let counters = S3Counters()
  let configuration: S3Configuration
  let queue: Lock<S3Queue>
  private let budget: ByteBudget
  private let log: Log
  private let multi: MultiHandle
  private var transfers: [UnsafeMutableRawPointer: S3Transfer] = [:]
  private var problem = ProblemLog()

  init(_ configuration: S3Configuration, budget: ByteBudget, log: Log) throws(SystemError) {
    self.configuration = configuration
    self.budget = budget
    self.log = log
    queue = Lock(S3Queue(configuration))
    do throws(ImageError) {
      multi = try MultiHandle(idleConnectionLimit: configuration.concurrency)
    } catch {
      throw SystemError(ENOMEM)
    }
  }

  /// Passes a request to the thread, or fails it at once. From any thread.
  func add(_ request: S3Request) {
    guard queue.withLock({ $0.add(request, now: .now) }) else { return request.finish(.failed) }
    multi.wakeUp()
  }

  /// Tells the thread to end. From any thread.
  func stop() {
    queue.withLock { $0.stop() }
    multi.wakeUp()
  }

  func run() {
    while !queue.withLock({ $0.isStopped }) {
      do throws(ImageError) {
        endExpired()
        // What begins in the place of one that has ended has to be passed to curl, too.
        repeat { try perform() } while try begin()
        let earliest = [
          transfers.values.map(\.request.deadline).min(), queue.withLock { $0.deadline },
        ].compactMap { $0 }.min()
        try multi.wait(atMost: earliest.map { $0 - .now } ?? .seconds(60))
      } catch {
        // curl lacks memory. The breaker opens, so that few requests follow.
        for transfer in Array(transfers.values) { end(transfer, .failed, .failure, "curl failed") }
        // Also if the failure came without a transfer: the thread must not spin.
        usleep(100_000)
      }
    }
    for transfer in Array(transfers.values) { end(transfer, .failed, .nothing, nil) }
    endExpired()
  }

  /// Begins requests while there is room. Writes leave half of it for reads. Returns whether there were any.
  private func begin() throws(ImageError) -> Bool {
    let before = transfers.count
    while transfers.count < configuration.concurrency {
      let writes = transfers.values.count { !$0.request.isRead }
      let mayWrite = writes < max(configuration.concurrency / 2, 1)
      guard let next = queue.withLock({ $0.next(mayWrite: mayWrite) }) else { break }
      do throws(ImageError) {
        let transfer = try S3Transfer(next, configuration, budget: budget)
        try multi.add(transfer.easy)
        transfers[transfer.easy] = transfer
      } catch {
        end(next, .failed, .nothing, nil)
      }
    }
    return transfers.count > before
  }

  /// Makes progress, and ends what is complete.
  private func perform() throws(ImageError) {
    for (easy, code) in try multi.perform() {
      guard let transfer = transfers[easy] else { continue }
      let (outcome, verdict, detail) = transfer.end(code)
      end(transfer, outcome, verdict, detail)
    }
  }

  /// Ends what is late or has no chance.
  private func endExpired() {
    let now = ContinuousClock.now
    for transfer in Array(transfers.values) where transfer.request.deadline <= now {
      end(transfer, .timedOut, .failure, "no answer in time")
    }
    for request in queue.withLock({ $0.takeExpired(now: now) }) {
      // It was not sent, so it says nothing about the bucket.
      end(request, .failed, .nothing, nil)
    }
  }

  private func end(
    _ transfer: S3Transfer, _ outcome: S3Outcome, _ verdict: Breaker.Outcome,
    _ detail: String?
  ) {
    transfers[transfer.easy] = nil
    multi.remove(transfer.easy)
    end(transfer.request, outcome, verdict, detail)
  }

  private func end(
    _ request: S3Request, _ outcome: S3Outcome, _ verdict: Breaker.Outcome,
    _ detail: String?
  ) {
    if verdict == .failure { counters.failures.add() }
    let (was, now) = queue.withLock { queue in
      let before = queue.breaker.openUntil != nil
      queue.end(request, verdict, now: .now)
      return (before, queue.breaker.openUntil != nil)
    }
    if !was, now { problem.failed(detail ?? "it does not answer", log) }
    if was, !now { problem.ended(log) }
    request.finish(outcome)
  }
}

/// Logs that the bucket is away and back, and the same reason at most once a minute: where only some requests are refused,
/// the breaker opens again and again.
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

/// The requests that wait. Reads are bounded here, writes by `VariantTier`.
struct S3Queue {
  private(set) var breaker = Breaker()
  private var reads = Deque<S3Request>()
  private var writes = Deque<S3Request>()
  private var lastNumber = 0
  private(set) var isStopped = false
  private let pauses: Backoff
  private let readLimit: Int

  init(_ configuration: S3Configuration) {
    pauses = configuration.pauses
    readLimit = configuration.readLimit
  }

  /// Whether a request would be sent.
  func isReady(now: ContinuousClock.Instant) -> Bool { !isStopped && !breaker.refuses(now: now) }

  /// Whether the breaker is closed.
  var isClosed: Bool { !isStopped && breaker.openUntil == nil }

  /// Requests that wait.
  var count: Int { reads.count + writes.count }

  /// Adds a request, or returns `false`: the breaker is open, the queue is full, or the bucket has ended.
  mutating func add(_ request: S3Request, now: ContinuousClock.Instant) -> Bool {
    let isFull = request.isRead && reads.count >= readLimit
    lastNumber += 1
    guard !isStopped, !isFull, breaker.admit(lastNumber, now: now) else { return false }
    var request = request
    request.number = lastNumber
    if request.isRead { reads.append(request) } else { writes.append(request) }
    return true
  }

  /// Takes the next request. Reads come first, since requests wait for them.
  ///
  /// - Parameter mayWrite: whether a write may begin.
  mutating func next(mayWrite: Bool) -> S3Request? {
    reads.popFirst() ?? (mayWrite ? writes.popFirst() : nil)
  }

  /// A request has ended.
  mutating func end(_ request: S3Request, _ outcome: Breaker.Outcome, now: ContinuousClock.Instant)
  {
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

/// The configuration of an `S3Bucket`.
public struct S3Configuration: Sendable {
  /// The settings.
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
  /// The value of `Host`.
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

  /// How long no request is sent after a failure: up to eight times as long, and never shorter than the interval, which
  /// bounds the time-outs of callers.
  var pauses: Backoff { Backoff(retryInterval, longest: retryInterval * 8, jitter: 1...1.25) }
  /// The longest wait for a read.
  var timeout: Duration { settings.timeout }
  /// The longest wait for a write. The request that made the entry does not wait, and a large entry takes its time.
  var writeTimeout: Duration { settings.timeout * 10 }

  var signer: AWSSigner? { credentials.map { AWSSigner($0, region: settings.access.region) } }
}
