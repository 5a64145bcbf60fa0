// PrefetchList: the lines of one prefetch list, in the order in which they run, and its progress.

import Core

/// The outcome of one line of a prefetch list.
enum PrefetchOutcome: Hashable, Sendable {
  /// The image was downloaded or rendered.
  case finished
  /// The image was cached and fresh.
  case skipped
  /// The image is not available.
  case failed(ImageError)
}

/// One prefetch list. A pure state machine: the caller passes the time.
struct PrefetchList {
  /// A line that needs work.
  struct Line: Sendable {
    /// The line number in the submitted list, from 1.
    let number: Int
    let request: ImageRequest

    /// The source host; `nil` for a local file, which has no host limit.
    var host: String? { request.source.scheme == .local ? nil : request.source.host }
  }

  private struct Host {
    let name: String?
    var lines: Deque<Line>
  }

  /// The maximum number of failures listed individually. `reasons` counts them all.
  static let failuresTold = 100

  /// Waiting lines by host. The least recently served host comes first.
  private var hosts = Deque<Host>()
  /// The number of waiting lines.
  private(set) var waiting = 0
  private var status: PrefetchStatus
  private var rate = PrefetchRate()
  /// The number of lines that needed no work: invalid and repeated ones.
  private var settledAtOnce = 0
  private let began: ContinuousClock.Instant

  /// Sorts the lines by host. Invalid lines fail at once and repeated lines are skipped. All lines
  /// get low priority and are not detached. O(n) in the number of lines.
  init(id: String, lines: [PrefetchLine], at now: ContinuousClock.Instant) {
    status = PrefetchStatus(id: id, total: lines.count)
    began = now
    var seen: Set<FlightKey> = []
    var indices: [String?: Int] = [:]
    for line in lines {
      switch line.request {
      case .success(var request):
        request.options.priority = .low
        // Detached work would outlive a cancelled list.
        request.options.isDetached = false
        guard seen.insert(FlightKey(request)).inserted else {
          count(.skipped, line: line.number)
          continue
        }
        let line = Line(number: line.number, request: request)
        waiting += 1
        if let index = indices[line.host] {
          hosts[index].lines.append(line)
        } else {
          indices[line.host] = hosts.count
          var host = Host(name: line.host, lines: Deque())
          host.lines.append(line)
          hosts.append(host)
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

  /// Returns the next line of the least recently served host that is not full, and removes it.
  mutating func take(sparing isFull: (String) -> Bool) -> Line? {
    let position = hosts.firstIndex { host in host.name.map { !isFull($0) } ?? true }
    guard let position else { return nil }
    var host = hosts.remove(at: position)
    let line = host.lines.popFirst()
    if !host.lines.isEmpty { hosts.append(host) }
    waiting -= 1
    return line
  }

  /// Records the outcome of a line. Does nothing after the list has ended.
  mutating func settle(
    _ line: Int, as outcome: PrefetchOutcome, at now: ContinuousClock.Instant
  ) {
    guard isRunning else { return }
    count(outcome, line: line)
    rate.add(at: now - began)
    endIfDone(at: now)
  }

  mutating func cancel(at now: ContinuousClock.Instant) {
    if isRunning { end(.cancelled, at: now) }
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
    hosts = Deque()
    waiting = 0
  }
}

/// A rate over a sliding window of ten seconds, which predicts the remaining time better than the
/// overall rate. Pure: the caller passes the time since the start.
struct PrefetchRate {
  private static let window = 10
  /// Counts by second, at the second's number modulo `window`.
  private var counts = [Int](repeating: 0, count: window)
  private var second = 0

  /// Counts one completed line.
  mutating func add(at elapsed: Duration) {
    advance(to: elapsed)
    counts[second % Self.window] += 1
  }

  /// Returns lines per second. During the first second, the count itself.
  mutating func value(at elapsed: Duration) -> Double {
    advance(to: elapsed)
    let start = Double(max(second - Self.window + 1, 0))
    return Double(counts.reduce(0, +)) / max(elapsed.inSeconds - start, 1)
  }

  private mutating func advance(to elapsed: Duration) {
    let now = max(Int(elapsed.components.seconds), second)
    for passed in (second..<now).suffix(Self.window) { counts[(passed + 1) % Self.window] = 0 }
    second = now
  }
}
