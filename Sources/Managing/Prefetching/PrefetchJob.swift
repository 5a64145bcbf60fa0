// PrefetchJob: tracks the progress of one prefetch list.

import Model
import Telemetry

/// The outcome of one line of a prefetch list.
enum PrefetchOutcome: Hashable, Sendable {
  /// The image was downloaded or rendered.
  case finished
  /// The image was cached and fresh.
  case skipped
  /// The image is not available.
  case failed(ImageError)
}

/// One prefetch list: its remaining lines and its progress. A pure state machine: the caller passes
/// the time.
struct PrefetchJob {
  /// A line that needs work.
  struct Wanted: Sendable {
    /// The line number in the submitted list, from 1.
    let number: Int
    let request: ImageRequest
  }

  /// The maximum number of failures listed individually. `reasons` counts them all.
  static let failuresTold = 100

  /// Lines that need work. A started line becomes `nil`, which releases its request.
  private var wanted: [Wanted?] = []
  private var status: PrefetchStatus
  private var rate = PrefetchRate()
  /// The number of lines that needed no work: invalid and repeated ones.
  private var settledAtOnce = 0
  private let began: ContinuousClock.Instant

  /// Parses a list. Invalid lines fail at once and repeated lines are skipped. O(n) in the number
  /// of lines.
  init(id: String, lines: [PrefetchLine], at now: ContinuousClock.Instant) {
    status = PrefetchStatus(id: id, total: lines.count)
    began = now
    var seen: Set<FlightKey> = []
    for line in lines {
      switch line.request {
      case .success(var request):
        request.options.priority = .low
        // Detached work would outlive a cancelled list.
        request.options.isDetached = false
        if seen.insert(FlightKey(request)).inserted {
          wanted.append(Wanted(number: line.number, request: request))
        } else {
          count(.skipped, line: line.number)
        }
      case .failure(let error): count(.failed(error), line: line.number)
      }
    }
    settledAtOnce = status.done
    endIfDone(at: now)
  }

  /// The identifier of the list.
  var id: String { status.id }
  /// Whether lines remain.
  var isRunning: Bool { status.state == .running }

  /// The source host of each line that needs work; `nil` for a local file.
  var hosts: [String?] {
    wanted.map { wanted in
      guard let source = wanted?.request.source, source.scheme != .local else { return nil }
      return source.host
    }
  }

  /// Returns a line that needs work, by its index among those, and removes it.
  mutating func take(_ index: Int) -> Wanted? { wanted[index].take() }

  /// Records the outcome of a started line. Does nothing after the list has ended.
  mutating func settle(
    _ line: Int, as outcome: PrefetchOutcome, at now: ContinuousClock.Instant
  ) {
    guard isRunning else { return }
    count(outcome, line: line)
    rate.add(at: now - began)
    endIfDone(at: now)
  }

  /// Cancels the list.
  mutating func cancel(at now: ContinuousClock.Instant) {
    guard isRunning else { return }
    end(.cancelled, at: now)
  }

  /// Returns the progress. The rate counts lines that needed work: over the last ten seconds, or
  /// over the whole run after the list has ended.
  mutating func status(at now: ContinuousClock.Instant) -> PrefetchStatus {
    guard isRunning else { return status }
    var status = status
    let elapsed = now - began
    status.seconds = elapsed.inSeconds
    status.rate = rate.value(at: elapsed)
    if status.rate > 0 { status.secondsLeft = Double(status.total - status.done) / status.rate }
    return status
  }

  private mutating func count(_ outcome: PrefetchOutcome, line: Int) {
    switch outcome {
    case .finished: status.finished += 1
    case .skipped: status.skipped += 1
    case .failed(let error):
      status.failed += 1
      status.reasons[error.code, default: 0] += 1
      if status.failures.count < Self.failuresTold {
        status.failures.append(
          PrefetchStatus.Failure(line: line, code: error.code, message: error.message))
      }
    }
  }

  private mutating func endIfDone(at now: ContinuousClock.Instant) {
    if status.done == status.total { end(.finished, at: now) }
  }

  private mutating func end(_ state: PrefetchStatus.State, at now: ContinuousClock.Instant) {
    status.state = state
    status.seconds = (now - began).inSeconds
    status.secondsLeft = 0
    let worked = status.done - settledAtOnce
    status.rate = worked > 0 && status.seconds > 0 ? Double(worked) / status.seconds : 0
    wanted = []
  }
}
