// S3Thread: the thread of the bucket, with all its requests.

import CCurl
import Glibc
import Model
import Platform
import Requesting
import Telemetry

/// Sends requests and ends each once. The thread retains this object until `stop`.
final class S3Thread: @unchecked Sendable {
  // Sound as Sendable: `queue` is a lock, and `transfers` and `problem` belong to the thread.

  let queue: Lock<S3Queue>
  private let configuration: S3Configuration
  private let budget: ByteBudget
  private let counters: S3Counters
  private let log: Log
  private let multi: MultiHandle
  private let thread = Lock<OwnThread?>(nil)
  private var transfers: [UnsafeMutableRawPointer: S3Transfer] = [:]
  private var problem = ProblemLog()

  /// Prepares libcurl. `start` starts the thread.
  init(
    _ configuration: S3Configuration, budget: ByteBudget, counters: S3Counters, log: Log
  ) throws(SystemError) {
    do throws(ImageError) {
      multi = try MultiHandle(idleConnectionLimit: configuration.concurrency)
    } catch {
      throw SystemError(ENOMEM)
    }
    queue = Lock(S3Queue(configuration))
    self.configuration = configuration
    self.budget = budget
    self.counters = counters
    self.log = log
  }

  func start() throws(SystemError) {
    let started = try OwnThread(name: "pictor-s3", rank: .work) { [self] in run() }
    thread.withLock { $0 = started }
  }

  /// Passes a request to the thread, or returns `false`; then the request has not begun.
  func send(_ request: S3Request) -> Bool {
    guard queue.withLock({ $0.add(request, now: .now) }) else { return false }
    multi.wakeUp()
    return true
  }

  /// Ends all requests and lets the thread end.
  func beginStop() {
    queue.withLock { $0.stop() }
    multi.wakeUp()
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
    _ transfer: S3Transfer, _ outcome: S3Request.Outcome, _ verdict: Breaker.Outcome,
    _ detail: String?
  ) {
    transfers[transfer.easy] = nil
    multi.remove(transfer.easy)
    end(transfer.request, outcome, verdict, detail)
  }

  private func end(
    _ request: S3Request, _ outcome: S3Request.Outcome, _ verdict: Breaker.Outcome,
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
