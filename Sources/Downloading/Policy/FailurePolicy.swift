// FailurePolicy: which hosts fail, are silent or slow, and which hops are retried.

import Core

/// A `Breaker` for each failing host, port and use of TLS (`DownloadTarget.circuit`).
///
/// Connection failures in a row open a circuit. What happens on a connection says something about
/// its URL: a client that asks for bad ones keeps no other client from the host. A success of any
/// load closes the circuit in every state. Only failing hosts have an entry, and the number of
/// entries is limited.
struct CircuitBreaker {
  typealias ID = DownloadQueue.ID

  private struct Circuit {
    var breaker = Breaker()
    /// The time of the last change.
    var changed: ContinuousClock.Instant
  }

  private var threshold = 0
  private var pauses = Backoff(.zero)
  private let hostLimit: Int
  private var circuits: [String: Circuit] = [:]

  /// Maximum open time, unless `openTime` is longer.
  static let longestOpenTime = Duration.seconds(300)

  /// Creates a circuit breaker.
  ///
  /// - Parameters:
  ///   - threshold: consecutive failures that open a circuit; 0: circuits never open.
  ///   - openTime: how long a circuit is open the first time.
  ///   - hostLimit: maximum number of hosts with an entry, at least 1.
  init(threshold: Int, openTime: Duration, hostLimit: Int = 10_000) {
    self.hostLimit = max(hostLimit, 1)
    set(threshold: threshold, openTime: openTime)
  }

  /// Changes when circuits open, and for how long from then on.
  mutating func set(threshold: Int, openTime: Duration) {
    self.threshold = max(threshold, 0)
    pauses = Backoff(max(openTime, .zero), longest: Self.longestOpenTime)
  }

  /// The number of circuits that are open or half-open.
  private(set) var openCount = 0
  /// The number of hosts with an entry.
  var hostCount: Int { circuits.count }

  /// Whether a load to `host` would be refused now.
  func refuses(_ id: ID, to host: String, now: ContinuousClock.Instant) -> Bool {
    circuits[host]?.breaker.refuses(id, now: now) ?? false
  }

  /// Writes the state of the circuit of `host` into an outlook.
  func describe(_ host: String, in outlook: inout LoadOutlook, now: ContinuousClock.Instant) {
    guard let breaker = circuits[host]?.breaker else { return }
    outlook.recentFailures = breaker.failures
    guard let openUntil = breaker.openUntil else { return }
    outlook.circuit = now < openUntil ? .open : .halfOpen
    if now < openUntil { outlook.opensAgain = (openUntil - now) / .seconds(1) }
  }

  /// Admits a load to `host`, as the probe if the circuit is half-open. Returns `false` if the load
  /// is refused. The caller must call `end` for each admitted load.
  mutating func admit(_ id: ID, to host: String, now: ContinuousClock.Instant) -> Bool {
    circuits[host]?.breaker.admit(id, now: now) ?? true
  }

  /// Records how a load's hop at `host` ended. Returns whether the circuit opened, or opened again.
  @discardableResult mutating func end(
    _ id: ID, at host: String, outcome: Breaker.Outcome, now: ContinuousClock.Instant
  ) -> Bool {
    if outcome == .success {
      if circuits.removeValue(forKey: host)?.breaker.openUntil != nil { openCount -= 1 }
      return false
    }
    guard outcome == .failure && threshold > 0 else {
      _ = circuits[host]?.breaker.end(id, .nothing, pauses: pauses, now: now)
      return false
    }
    var circuit = circuits[host] ?? Circuit(changed: now)
    let wasOpen = circuit.breaker.openUntil != nil
    let opens = circuit.breaker.end(id, outcome, threshold: threshold, pauses: pauses, now: now)
    if opens, !wasOpen { openCount += 1 }
    circuit.changed = now
    if circuits[host] == nil, circuits.count >= hostLimit { forgetSome(now: now) }
    circuits[host] = circuit
    return opens
  }

  /// Removes a quarter of the entries, so that sorting is rare. Removes those that changed longest
  /// ago, preferably of circuits that refuse no loads at present.
  private mutating func forgetSome(now: ContinuousClock.Instant) {
    let idle = circuits.filter { !$0.value.breaker.refuses(now: now) }
    let oldest = (idle.isEmpty ? circuits : idle).sorted { $0.value.changed < $1.value.changed }
    for (host, circuit) in oldest.prefix(max(hostLimit / 4, 1)) {
      circuits[host] = nil
      if circuit.breaker.openUntil != nil { openCount -= 1 }
    }
  }
}

extension Breaker.Outcome {
  /// Derives the outcome for the host at which a load ended.
  ///
  /// - Parameters:
  ///   - result: the load's result.
  ///   - wasConnected: whether a connection was made.
  init(of result: Result<LoadResult, ImageError>, wasConnected: Bool) {
    switch result {
    case .success: self = .success
    case .failure(.cancelled), .failure(.draining), .failure(.internal): self = .nothing
    case .failure where wasConnected: self = .success
    case .failure(.sourceTimeout), .failure(.sourceUnreachable), .failure(.sourceTLS):
      self = .failure
    case .failure: self = .nothing
    }
  }
}

/// Retries hops after transient failures that had no effect at the origin.
struct RetryPolicy: Sendable {
  /// The failures that may be retried.
  enum Failure: Hashable {
    /// Name resolution, connection, connection time-out or reset, before the first byte of a
    /// response.
    case connection
    /// A response with an error status, and its `Retry-After` as sent.
    case status(Int, retryAfter: String?)
  }

  /// Maximum retries of one load, over all hops.
  let limit: Int
  /// Average delay of the first retry; doubles with each further one.
  let delay: Duration

  /// Maximum `Retry-After` in seconds; clients do not wait longer for an image.
  static let longestRetryAfter = 2

  /// Returns the delay before the next retry, or `nil` for no retry.
  ///
  /// - Parameters:
  ///   - failure: the failure of the hop.
  ///   - retries: retries of the load so far.
  ///   - timeLeft: time until the load's time-out, which retries do not extend.
  ///   - chance: a random number from 0 to 1 that selects the jitter within ± 50 %, so that loads
  ///     that failed together do not retry together.
  ///   - now: the current time.
  func delay(
    after failure: Failure, retries: Int, timeLeft: Duration, chance: Double, now: UnixTime
  ) -> Duration? {
    guard retries < limit else { return nil }
    var wait = Backoff(delay, jitter: 0.5...1.5).pause(after: retries, chance: chance)
    if case .status(let status, let retryAfter) = failure {
      guard [502, 503, 504].contains(status), let retryAfter,
        let seconds = Self.seconds(ofRetryAfter: retryAfter, now: now),
        seconds <= Self.longestRetryAfter
      else { return nil }
      // Not earlier than the origin asks (RFC 9110, section 10.2.3).
      wait += .seconds(seconds)
    }
    return wait < timeLeft ? wait : nil
  }

  /// Parses `Retry-After`, a number of seconds or a date. Returns seconds from `now`, from 0 to
  /// `Freshness.unlimited`, or `nil` if invalid.
  static func seconds(ofRetryAfter text: String, now: UnixTime) -> Int? {
    if !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) {
      return min(Int(text) ?? .max, Freshness.unlimited)
    }
    return HTTPDate.parse(text, now: now).map {
      min(max($0.seconds - now.seconds, 0), Freshness.unlimited)
    }
  }
}

/// Measures how fast a hop's host sends: whether it responds in time, and then how many bytes it
/// sends in each of the windows since its response.
///
/// Only a window that is over counts, so a host that sends in bursts has `window` for each. A host
/// that was slow in one window may be fast in the next.
package struct TransferPace {
  /// What a check found.
  enum Finding: Hashable {
    /// The host has not responded for long.
    case silent
    /// The host has sent less than the minimum in the last window; `rate` in KiB/s.
    case slow(rate: Int)
    /// The host has sent enough in the last window.
    case fast
  }

  /// When a host counts as silent or slow: then it no longer counts against `limit`. Operators do
  /// not set it, because such transfers are nearly idle and their time-outs still apply.
  package struct Limits: Sendable {
    /// The longest time without a response.
    package var silentAfter = Duration.seconds(1)
    /// How long a host's rate is measured, first from its response on, then again and again.
    package var window = Duration.seconds(2)
    /// The minimum rate in bytes per second.
    package var minimumRate = 16 << 10
  }

  private let limits: Limits
  private let asked: ContinuousClock.Instant
  /// The beginning of the current window, and the bytes before it; `nil` before the response.
  private var mark: (time: ContinuousClock.Instant, bytes: Int)?

  /// Begins with a request.
  init(_ limits: Limits, asked: ContinuousClock.Instant) {
    self.limits = limits
    self.asked = asked
  }

  /// Checks a hop. Returns `nil` if nothing is known since the last finding.
  ///
  /// - Parameters:
  ///   - answered: when the response head was complete; `nil` if it is not.
  ///   - bytes: all bytes of the body so far.
  mutating func check(
    answered: ContinuousClock.Instant?, bytes: Int, now: ContinuousClock.Instant
  ) -> Finding? {
    guard let answered else { return asked + limits.silentAfter <= now ? .silent : nil }
    let begin = mark ?? (answered, 0)
    mark = begin
    let time = now - begin.time
    guard time >= limits.window, time > .zero else { return nil }
    mark = (now, bytes)
    let rate = Double(bytes - begin.bytes) / (time / .seconds(1))
    return rate < Double(limits.minimumRate) ? .slow(rate: Int(rate / 1_024)) : .fast
  }

  /// Begins a new window, because the host could not send in the last one.
  mutating func restart(at now: ContinuousClock.Instant, bytes: Int) { mark = (now, bytes) }

  /// When the next check can find something.
  func next(answered: ContinuousClock.Instant?) -> ContinuousClock.Instant {
    guard let answered else { return asked + limits.silentAfter }
    return (mark?.time ?? answered) + limits.window
  }
}
