// S3Thread: the thread of the bucket, with all transfers in one multi handle of libcurl.

import CCurl
import Glibc
import Model
import Platform
import Telemetry

/// Sends requests and ends each once. The thread retains this object until `stop`.
final class S3Thread: @unchecked Sendable {
  // Sound as Sendable: `queue` is a lock, `transfers` and `problem` belong to the thread, and of the multi handle other
  // threads only call `curl_multi_wakeup`, which curl allows. The handle lives as long as this object.

  let queue: Lock<S3Queue>
  private let configuration: S3Configuration
  private let budget: ByteBudget
  private let counters: S3Counters
  private let log: Log
  private let multi: UnsafeMutableRawPointer
  private let thread = Lock<OwnThread?>(nil)
  private var transfers: [UnsafeMutableRawPointer: S3Transfer] = [:]
  private var problem = ProblemLog()

  /// Prepares libcurl. `start` starts the thread.
  init(
    _ configuration: S3Configuration, budget: ByteBudget, counters: S3Counters, log: Log
  ) throws(SystemError) {
    guard curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK, let multi = curl_multi_init()
    else { throw SystemError(ENOMEM) }
    queue = Lock(S3Queue(configuration))
    self.configuration = configuration
    self.budget = budget
    self.counters = counters
    self.log = log
    self.multi = multi
    guard
      pictor_curl_multi_set_long(multi, CURLMOPT_MAXCONNECTS, configuration.concurrency) == CURLM_OK
    else { throw SystemError(EINVAL) }
  }

  deinit { curl_multi_cleanup(multi) }

  func start() throws(SystemError) {
    let started = try OwnThread(name: "pictor-s3", rank: .work) { [self] in run() }
    thread.withLock { $0 = started }
  }

  /// Passes a request to the thread, or returns `false`; then the request has not begun.
  func send(_ request: S3Request) -> Bool {
    guard queue.withLock({ $0.add(request, now: .now) }) else { return false }
    curl_multi_wakeup(multi)
    return true
  }

  /// Ends all requests and lets the thread end.
  func beginStop() {
    queue.withLock { $0.stop() }
    curl_multi_wakeup(multi)
  }

  /// As `beginStop`, for an owner that does not wait for the thread.
  func abandon() {
    beginStop()
    thread.withLock { $0.take() }?.detach()
  }

  /// Waits for the thread.
  func join() { thread.withLock { $0.take() }?.join() }

  // MARK: The thread

  private func run() {
    while !queue.withLock({ $0.isStopped }) {
      endExpired()
      begin()
      guard perform() else {
        endAll()
        continue
      }
      let earliest = [
        transfers.values.map(\.request.deadline).min(), queue.withLock { $0.deadline },
      ].compactMap { $0 }.min()
      let rest = earliest.map { $0 - .now } ?? .seconds(60)
      let milliseconds = min(max((rest / .milliseconds(1)).rounded(.up), 0), 60_000)
      // A begun transfer has nothing to wait for yet where there is room for another: `perform` comes first.
      if curl_multi_poll(multi, nil, 0, CInt(milliseconds), nil) != CURLM_OK { endAll() }
    }
    for transfer in Array(transfers.values) {
      remove(transfer)
      end(transfer, .failed, .unknown, nil)
    }
    endExpired()
  }

  /// Ends all transfers after a failure of curl, which lacks memory. The breaker opens, so that few requests follow.
  private func endAll() {
    for transfer in Array(transfers.values) {
      remove(transfer)
      end(transfer, .failed, .failed, "curl failed")
    }
    // Also if the failure came without a transfer: the thread must not spin.
    usleep(100_000)
  }

  /// Begins requests while there is room. Writes leave half of it for reads.
  private func begin() {
    while transfers.count < configuration.concurrency {
      let writes = transfers.values.count { !$0.request.isRead }
      let mayWrite = writes < max(configuration.concurrency / 2, 1)
      guard let next = queue.withLock({ $0.next(mayWrite: mayWrite) }) else { return }
      guard
        let transfer = S3Transfer(next.request, next.ticket, configuration, budget: budget),
        curl_multi_add_handle(multi, transfer.easy) == CURLM_OK
      else {
        end(next, .failed, .unknown, nil)
        continue
      }
      transfers[transfer.easy] = transfer
    }
  }

  /// Makes progress, and ends what is complete. Returns `false` if curl cannot continue.
  private func perform() -> Bool {
    repeat {
      var running: CInt = 0
      guard curl_multi_perform(multi, &running) == CURLM_OK else { return false }
      var left: CInt = 0
      while let message = curl_multi_info_read(multi, &left)?.pointee {
        // The next call invalidates the message, so it is copied first.
        guard message.msg == CURLMSG_DONE, let easy = message.easy_handle,
          let transfer = transfers[easy]
        else { continue }
        remove(transfer)
        let (outcome, verdict, detail) = transfer.end(message.data.result)
        end(transfer, outcome, verdict, detail)
      }
      let before = transfers.count
      begin()
      // What has begun now has to be passed to curl, too.
      if transfers.count == before { return true }
    } while true
  }

  private func remove(_ transfer: S3Transfer) {
    transfers[transfer.easy] = nil
    curl_multi_remove_handle(multi, transfer.easy)
  }

  /// Ends what is late or has no chance.
  private func endExpired() {
    let now = ContinuousClock.now
    for transfer in Array(transfers.values) where transfer.request.deadline <= now {
      remove(transfer)
      end(transfer, .timedOut, .failed, "no answer in time")
    }
    for admitted in queue.withLock({ $0.takeExpired(now: now) }) {
      // It was not sent, so it says nothing about the bucket.
      end(admitted, .failed, .unknown, nil)
    }
  }

  private func end(
    _ transfer: S3Transfer, _ outcome: S3Request.Outcome, _ verdict: RequestBreaker.Verdict,
    _ detail: String?
  ) {
    end((transfer.request, transfer.ticket), outcome, verdict, detail)
  }

  private func end(
    _ admitted: S3Queue.Admitted, _ outcome: S3Request.Outcome, _ verdict: RequestBreaker.Verdict,
    _ detail: String?
  ) {
    if verdict == .failed { counters.failures.add() }
    let state = queue.withLock { queue in
      queue.end(admitted, verdict, now: .now) ? queue.breaker.state : nil
    }
    switch state {
    case .open?: problem.failed(detail ?? "it does not answer", log)
    case .closed?: problem.ended(log)
    case .halfOpen?, nil: break
    }
    admitted.request.finish(outcome)
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
