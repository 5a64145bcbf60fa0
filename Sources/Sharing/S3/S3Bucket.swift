// S3Bucket: entries of the shared tier as objects of a bucket, and the requests for them.

import CCurl
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

/// What became of a request to the bucket.
enum S3Outcome: Sendable {
  case found(FileRegion)
  case absent
  case written
  /// The bucket is away or refuses, or the entry is too large, or memory has no room.
  case failed
  /// No answer before the deadline.
  case timedOut
}

struct S3Request: Sendable {
  enum Work: Sendable {
    case read
    /// A write, and when the entry expires.
    case write([UInt8], expires: UnixTime)
  }

  let work: Work
  /// The name of the object after the prefix.
  let path: String
  let deadline: ContinuousClock.Instant

  var isRead: Bool {
    if case .read = work { true } else { false }
  }

  /// Returns the path of an entry: `v:0123…` becomes `v/01/23…`.
  ///
  /// Names are a kind and a digest, so the two digits spread objects evenly over 256 prefixes. S3
  /// splits a bucket by prefixes, and tools can list, copy or remove a part.
  static func path(of name: String) -> String {
    let parts = name.split(separator: ":", maxSplits: 1)
    let digest = parts.last ?? ""
    return "\(parts.first ?? "")/\(digest.prefix(2))/\(digest.dropFirst(2))"
  }

  /// Returns the request, signed now.
  ///
  /// The body is not part of the signature: an entry has a SHA-256 of its own, which each reader
  /// compares, TLS protects the way.
  func request(_ configuration: S3Configuration, at time: UnixTime) -> ServerRequest {
    var request = ServerRequest(isRead ? .get : .put, configuration.base + path)
    var fields: [HeaderField] = []
    if case .write(let body, let expires) = work {
      request.body = body
      fields = [
        ("Content-Type", "application/octet-stream"),
        ("x-amz-meta-expires", AWSDate(expires, isExtended: true).text),
      ].compactMap { HeaderField($0.0, value: $0.1) }
    }
    if let signer = configuration.signer {
      fields += signer.fields(
        for: AWSRequest(
          method: request.method.rawValue, host: configuration.host,
          path: configuration.basePath + path, fields: fields,
          payload: isRead ? .empty : .unsigned), at: time)
    }
    request.fields = fields.map { "\($0.name): \($0.value)" } + ["Accept:"]
    request.caFile = configuration.settings.caFile
    // That of an error.
    request.limit = 4 << 10
    return request
  }
}

/// A request with its exchange. Entries are received into memory files. Belongs to one thread.
final class S3Transfer {
  /// The outcome, what it says about the bucket, and the reason of a failure.
  typealias End = (S3Outcome, Breaker.Outcome, detail: String?)

  let exchange: ServerExchange
  private let isRead: Bool
  private let budget: ByteBudget
  private let entryLimit: Int
  /// What this machine ended the transfer with.
  private var stop: End?
  private var expected: Int?
  private var received = 0
  private var file: MemoryFile?
  private var lease: ByteLease?

  /// Prepares a request, signed now.
  init(
    _ request: S3Request, _ configuration: S3Configuration, budget: ByteBudget
  ) throws(ImageError) {
    isRead = request.isRead
    self.budget = budget
    entryLimit = configuration.settings.entryLimit
    exchange = try ServerExchange(request.request(configuration, at: .now))
    exchange.sink = { [unowned self] in receive($0) }
  }

  /// Receives a piece of an entry, or of an error. Returns whether curl continues.
  private func receive(_ piece: UnsafeRawBufferPointer) -> Bool {
    guard isRead, exchange.status == 200 else { return exchange.keep(piece) }
    if expected == nil { stop = makeRoom() }
    guard stop == nil, let expected else { return false }
    // Also if curl should pass on more than is declared.
    guard received + piece.count <= expected, (try? file?.append(piece)) != nil else {
      stop = (.failed, .success, nil)
      return false
    }
    received += piece.count
    return true
  }

  /// Prepares the file for an entry. Returns why it cannot be received.
  private func makeRoom() -> End? {
    let length = exchange.easy.offset(CURLINFO_CONTENT_LENGTH_DOWNLOAD_T)
    guard length > 0 else { return (.failed, .failure, "a response without Content-Length") }
    expected = length
    if length <= entryLimit { lease = budget.lease(length) }
    if lease != nil { file = try? MemoryFile(name: "pictor-s3") }
    return file == nil ? (.failed, .success, nil) : nil
  }

  /// Returns how the transfer ended, after curl has ended it.
  func end(_ code: CURLcode) -> End {
    if let stop { return stop }
    guard !exchange.isHeadTooLong else { return (.failed, .failure, "too many header fields") }
    // Of an error that is cut, the status counts.
    guard code == CURLE_OK || exchange.isCut else { return (.failed, .failure, Curl.text(code)) }
    let status = exchange.status
    let name = AWSErrorCode.find(in: exchange.bytes)
    let detail = "status \(status)" + (name.map { ", \($0)" } ?? "")
    switch (isRead, status) {
    case (true, 200):
      guard received > 0, received == expected else {
        return (.failed, .failure, "\(received) bytes of \(expected ?? 0)")
      }
      let region = try? file.take()?.sealed(lease: lease)
      return (region.map { .found($0) } ?? .failed, .success, nil)
    // A missing bucket is 404, too.
    case (true, 404) where name == nil || name == "NoSuchKey": return (.absent, .success, nil)
    // S3 says 200; other servers say 201 for what is new, or 204 (RFC 9110, section 9.3.4).
    case (false, 200), (false, 201), (false, 204): return (.written, .success, nil)
    // Answers about this entry: a conflict, too large, no room.
    case (false, 409), (false, 412), (false, 413), (false, 507):
      return (.failed, .success, detail)
    default: return (.failed, .failure, detail)
    }
  }
}

/// Counts of the bucket of the shared tier.
final class S3Counters: Sendable {
  let hits = Counter(
    "hits", "pictor_fleet_bucket_requests_total", "Reads and writes of entries in the bucket.",
    ["result": "hit"])
  let misses = Counter(
    "misses", "pictor_fleet_bucket_requests_total", "Absent entries.", ["result": "miss"])
  /// Of `hits`.
  let refused = Counter(
    "refused", "pictor_fleet_bucket_requests_total",
    "Entries purged, expired, damaged, or of another version.", ["result": "refused"])
  /// Not sent, failed, or without room for the entry.
  let unavailable = Counter(
    "unavailable", "pictor_fleet_bucket_requests_total", "Reads without an answer.",
    ["result": "unavailable"])
  let timedOut = Counter(
    "timed_out", "pictor_fleet_bucket_requests_total", "Reads and writes without one in time.",
    ["result": "timed_out"])
  /// Refused connections, errors of the bucket, time-outs, invalid answers.
  let failures = Counter(
    "failures", "pictor_fleet_bucket_requests_total", "Reads and writes that failed.",
    ["result": "failed"])
  let stores = Counter(
    "stores", "pictor_fleet_bucket_requests_total", "Entries written.", ["result": "written"])
  let dropped = Counter(
    "dropped", "pictor_fleet_bucket_requests_total", "Entries not written.",
    ["result": "dropped"])
  let bytes = Counter(
    "bytes", "pictor_fleet_bucket_bytes_total", "Bytes of entries found and written.",
    ["service": "s3"])
}
