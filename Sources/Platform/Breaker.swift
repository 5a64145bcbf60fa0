// Breaker, Backoff: whether a server that fails is asked, and the pauses between attempts.

/// Decides whether a server that fails is asked. Pure: the caller passes the time.
///
/// - *Closed*: all requests are admitted. Several failures in a row open it.
/// - *Open*: no request is admitted for a while.
/// - *Half-open*: one request is admitted as the probe. Its success closes the breaker, its failure
///   opens it for longer.
///
/// Requests that began before it opened change nothing.
public struct Breaker: Sendable {
  /// What the end of a request says about the server.
  public enum Outcome: Hashable, Sendable {
    /// It answers.
    case success
    /// It is away, or refuses.
    case failure
    /// Nothing: the request was not sent, or ended by this machine.
    case nothing
  }

  /// Failures in a row.
  public private(set) var failures = 0
  /// How often it opened since it was closed.
  public private(set) var openings = 0
  /// When the breaker is half-open; `nil` if it is closed.
  public private(set) var openUntil: ContinuousClock.Instant?
  /// The request that is admitted while half-open.
  public private(set) var probe: Int?

  /// Creates a closed breaker.
  public init() {}

  /// Whether a request would be refused. The probe would not.
  public func refuses(_ id: Int? = nil, now: ContinuousClock.Instant) -> Bool {
    guard let openUntil else { return false }
    return now < openUntil || probe != nil && probe != id
  }

  /// Admits a request, as the probe if the breaker is half-open. Returns `false` if it is refused;
  /// otherwise `end` has to follow.
  public mutating func admit(_ id: Int, now: ContinuousClock.Instant) -> Bool {
    guard !refuses(id, now: now) else { return false }
    if openUntil != nil { probe = id }
    return true
  }

  /// Records how a request ended. Returns whether the breaker opened, or opened again.
  ///
  /// - Parameters:
  ///   - threshold: the failures in a row that open it, at least 1.
  ///   - pauses: how long it is open.
  public mutating func end(
    _ id: Int, _ outcome: Outcome, threshold: Int = 1, pauses: Backoff,
    now: ContinuousClock.Instant
  ) -> Bool {
    if openUntil != nil {
      guard probe == id else { return false }
      probe = nil
    }
    switch outcome {
    case .nothing: return false
    case .success:
      self = Breaker()
      return false
    case .failure:
      failures += 1
      guard openUntil != nil || failures >= threshold else { return false }
      openUntil = now + pauses.pause(after: openings)
      openings += 1
      return true
    }
  }
}

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
