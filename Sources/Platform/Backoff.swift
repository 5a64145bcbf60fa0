// Backoff: the pauses between attempts that fail.

/// Pauses that double with each failure, with jitter: those that failed together do not come back
/// together.
public struct Backoff: Sendable {
  private let first: Duration
  private let longest: Duration
  private let jitter: ClosedRange<Double>

  /// - Parameters:
  ///   - first: the pause after the first failure.
  ///   - longest: the longest pause before jitter, unless `first` is longer.
  ///   - jitter: what a pause is multiplied with, at random.
  public init(
    _ first: Duration, longest: Duration = .seconds(86_400), jitter: ClosedRange<Double> = 1...1
  ) {
    self.first = first
    self.longest = max(longest, first)
    self.jitter = jitter
  }

  /// Returns the next pause.
  ///
  /// - Parameters:
  ///   - failures: the failures before the last one.
  ///   - chance: the place within the jitter, from 0 to 1.
  public func pause(after failures: Int, chance: Double = .random(in: 0...1)) -> Duration {
    let pause = min(first * (1 << min(failures, 20)), longest)
    return pause * (jitter.lowerBound + chance * (jitter.upperBound - jitter.lowerBound))
  }
}
