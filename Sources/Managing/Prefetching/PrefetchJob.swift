// PrefetchJob: one list that is prefetched, and how far it is. Pure: it is told what time it is.

import Model
import Telemetry

/// How a line of a list ended.
enum PrefetchOutcome: Hashable, Sendable {
  /// Its image was loaded or made.
  case finished
  /// Its image was there and fresh.
  case skipped
  /// It has no image.
  case failed(ImageError)
}

/// One list: what is to be asked for, and what has become of it.
struct PrefetchJob {
  /// A line that needs work.
  struct Wanted: Sendable {
    /// Its number in the list as it was given, from 1.
    let number: Int
    let request: ImageRequest
  }

  /// Most failures that are told one by one; the reasons count them all.
  static let failuresTold = 100

  /// What needs work; gone from here once it is begun, so that a long list takes less and less room.
  private var wanted: [Wanted?] = []
  private var status: PrefetchStatus
  private var rate = PrefetchRate()
  /// Lines that needed no work: bad ones, and those that say what an earlier one said.
  private var settledAtOnce = 0
  private let began: ContinuousClock.Instant

  /// Looks a list through. Bad lines have failed from the start, and repeated ones are skipped. Takes time in proportion
  /// to the list's length.
  init(id: String, lines: [PrefetchLine], at now: ContinuousClock.Instant) {
    status = PrefetchStatus(id: id, total: lines.count)
    began = now
    var seen: Set<FlightKey> = []
    for line in lines {
      switch line.request {
      case .success(var request):
        request.options.priority = .low
        // Nobody but the list wants it: it ends with the list.
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

  /// The list's name.
  var id: String { status.id }
  /// Whether there is something left to be done.
  var isRunning: Bool { status.state == .running }

  /// For each line that needs work, whom it asks; `nil` for a local file.
  var hosts: [String?] {
    wanted.map { wanted in
      guard let source = wanted?.request.source, source.scheme != .local else { return nil }
      return source.host
    }
  }

  /// Gives out a line that needs work, by its place among those; once.
  mutating func take(_ index: Int) -> Wanted? { wanted[index].take() }

  /// A line that was given out has ended; of no account once the list has.
  mutating func settle(
    _ line: Int, _ outcome: PrefetchOutcome, at now: ContinuousClock.Instant
  ) {
    guard isRunning else { return }
    count(outcome, line: line)
    rate.add(at: now - began)
    endIfDone(at: now)
  }

  /// Somebody ends it.
  mutating func cancel(at now: ContinuousClock.Instant) {
    guard isRunning else { return }
    end(.cancelled, at: now)
  }

  /// How far it is. The rate is of lines that needed work: over the last ten seconds, and once the list has ended, over
  /// all of its life.
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
