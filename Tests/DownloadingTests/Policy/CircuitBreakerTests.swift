// CircuitBreakerTests: tests of CircuitBreaker, without sockets or clocks.

import Core
import TestSupport
import Testing

@testable import Downloading

@Suite(.onOwnThreads) struct CircuitBreakerTests {
  private let start = ContinuousClock.now

  private func makeBreaker(_ threshold: Int = 3, hosts: Int = 100) -> CircuitBreaker {
    CircuitBreaker(threshold: threshold, openTime: .seconds(30), hostLimit: hosts)
  }

  /// Lets loads of a host fail one after the other. Returns for each whether it opened the circuit.
  private func fail(
    _ breaker: inout CircuitBreaker, host: String, times: Int, at now: ContinuousClock.Instant
  ) -> [Bool] {
    (1...times).map { id in
      _ = breaker.admit(id, to: host, now: now)
      return breaker.end(id, at: host, outcome: .failure, now: now)
    }
  }

  @Test func `a threshold of 0 disables the breaker`() {
    var breaker = makeBreaker(0)
    let opened = fail(&breaker, host: "a", times: 1_000, at: start)
    #expect(!opened.contains(true))
    #expect(breaker.hostCount == 0)
  }

  @Test func `the number of tracked hosts is limited, and open circuits are kept longest`() {
    // Given
    var breaker = makeBreaker(2, hosts: 8)
    _ = fail(&breaker, host: "dead", times: 2, at: start)
    // When
    for number in 1...100 {
      _ = fail(&breaker, host: "h\(number)", times: 1, at: start + .milliseconds(number))
      #expect(breaker.hostCount <= 8)
    }
    // Then
    #expect(breaker.refuses(9, to: "dead", now: start + .seconds(1)))
    #expect(breaker.openCount == 1)
    // When: all tracked circuits are open
    for number in 1...100 {
      _ = fail(&breaker, host: "d\(number)", times: 2, at: start + .seconds(number))
      #expect(breaker.hostCount <= 8 && breaker.openCount <= 8)
    }
    // Then: the newest are kept
    #expect(breaker.refuses(9, to: "d100", now: start + .seconds(100)))
    #expect(!breaker.refuses(9, to: "dead", now: start + .seconds(1)))
  }

  @Test(arguments: [
    (ImageError.sourceUnreachable(detail: ""), Breaker.Outcome.failure),
    (.sourceTimeout(detail: ""), .failure), (.sourceTLS(detail: ""), .failure),
    (.forbiddenSource(reason: "", detail: ""), .nothing), (.cancelled, .nothing),
    (.draining, .nothing), (.internal(detail: ""), .nothing),
  ])
  func `an error counts against a host that was not connected`(
    error: ImageError, expected: Breaker.Outcome
  ) {
    #expect(Breaker.Outcome(of: .failure(error), wasConnected: false) == expected)
  }

  @Test(arguments: [
    ImageError.sourceUnreachable(detail: ""), .sourceTimeout(detail: ""), .sourceTLS(detail: ""),
    .sourceError(status: 500), .sourceNotFound(status: 404), .sourceTooLarge(limit: 1),
    .sourceIncomplete(detail: ""), .forbiddenSource(reason: "", detail: ""),
  ])
  func `no error counts against a host that was connected`(error: ImageError) {
    #expect(Breaker.Outcome(of: .failure(error), wasConnected: true) == .success)
    for error in [ImageError.cancelled, .draining, .internal(detail: "")] {
      #expect(Breaker.Outcome(of: .failure(error), wasConnected: true) == .nothing)
    }
  }

  @Test func `random schedules refuse a host, probe it and wait longer exactly as the model does`()
  {
    var random = SeededGenerator(seed: 4)
    var breaker = makeBreaker()
    var models = (0..<5).map { _ in HostModel(threshold: 3, openTime: .seconds(30)) }
    var now = start
    var faults: [String] = []

    for step in 1...100_000 where faults.isEmpty {
      now += .milliseconds(Int.random(in: 0...4_000, using: &random))
      let number = Int.random(in: 0..<models.count, using: &random)
      let host = "h\(number)"
      let someone = models[number].onTheWay.sorted().randomElement(using: &random)
      if let someone, models[number].onTheWay.count > 6 || Bool.random(using: &random) {
        // The higher the number, the more often a host fails.
        let outcome: Breaker.Outcome =
          switch Int.random(in: 0..<10, using: &random) {
          case 0: .nothing
          case ...(number * 2): .failure
          default: .success
          }
        let opens = breaker.end(someone, at: host, outcome: outcome, now: now)
        let expected = models[number].end(someone, outcome: outcome, now: now)
        if opens != expected { faults.append("\(step): opens \(opens), not \(expected)") }
      } else {
        let refuses = breaker.refuses(step, to: host, now: now)
        let admits = breaker.admit(step, to: host, now: now)
        let expected = models[number].admit(step, now: now)
        if admits != expected { faults.append("\(step): admits \(admits), not \(expected)") }
        if refuses == admits { faults.append("\(step): refuses and admits") }
      }
      if breaker.openCount != models.count(where: \.isOpen) { faults.append("\(step): count") }
      if models[number].isStuck { faults.append("\(step): stuck") }
    }
    #expect(faults == [])
    // Each state was met often.
    for model in models.dropFirst() { #expect(model.openings > 10 && model.probes > 10) }
  }
}

/// The expected state of one host's circuit, derived from its history.
private struct HostModel {
  let threshold: Int
  let openTime: Duration
  /// Failed connections since the last success, of those that count.
  private var failures = 0
  private var openedAt: ContinuousClock.Instant?
  private var wait = Duration.zero
  private var probe: Int?
  private(set) var onTheWay: Set<Int> = []
  private(set) var openings = 0
  private(set) var probes = 0

  init(threshold: Int, openTime: Duration) {
    self.threshold = threshold
    self.openTime = openTime
  }

  var isOpen: Bool { openedAt != nil }

  mutating func admit(_ id: Int, now: ContinuousClock.Instant) -> Bool {
    if let openedAt {
      guard now - openedAt >= wait, probe == nil else { return false }
      probe = id
      probes += 1
    }
    onTheWay.insert(id)
    return true
  }

  mutating func end(
    _ id: Int, outcome: Breaker.Outcome, now: ContinuousClock.Instant
  ) -> Bool {
    onTheWay.remove(id)
    let wasProbe = probe == id
    if wasProbe { probe = nil }
    switch outcome {
    case .nothing: return false
    case .success:
      reset()
      return false
    case .failure:
      guard openedAt == nil || wasProbe else { return false }
      failures += 1
      return opens(now)
    }
  }

  private mutating func reset() {
    failures = 0
    openedAt = nil
    probe = nil
  }

  private mutating func opens(_ now: ContinuousClock.Instant) -> Bool {
    guard openedAt != nil || failures >= threshold else { return false }
    // 30, 60, 120, 240, 300 …
    wait = openedAt == nil ? openTime : min(wait * 2, .seconds(300))
    openedAt = now
    openings += 1
    return true
  }

  /// Whether no load is running and yet all loads would be refused permanently.
  var isStuck: Bool { onTheWay.isEmpty && probe != nil }
}
