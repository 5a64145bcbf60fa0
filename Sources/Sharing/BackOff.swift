// BackOff: the pauses between attempts to reach a server that is away. Pure.

/// Pauses that double with each failure, with jitter.
struct BackOff: Equatable {
  /// The longest pause, in intervals and before jitter.
  static let longest = 8

  /// Failures since the last success.
  private(set) var failures = 0
  private let interval: Duration
  private let jitter: @Sendable (ClosedRange<Double>) -> Double

  /// - Parameters:
  ///   - interval: the first pause. It doubles with each further failure, to `longest` intervals at most.
  ///   - jitter: returns a number in a range, so that the machines of a fleet do not come back at one moment.
  init(
    interval: Duration,
    jitter: @escaping @Sendable (ClosedRange<Double>) -> Double = { .random(in: $0) }
  ) {
    self.interval = interval
    self.jitter = jitter
  }

  /// Counts a failure. Returns the pause: never shorter than the interval, which bounds the time-outs of callers, and
  /// up to a quarter longer.
  mutating func fail() -> Duration {
    let steps = min(1 << min(failures, 10), Self.longest)
    failures += 1
    return interval * Double(steps) * jitter(1...1.25)
  }

  /// The next failure is the first one.
  mutating func succeed() { failures = 0 }

  static func == (left: Self, right: Self) -> Bool { left.failures == right.failures }
}
