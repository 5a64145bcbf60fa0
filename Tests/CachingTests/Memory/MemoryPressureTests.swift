// MemoryPressureTests: how the memory tier's limit shrinks under pressure and recovers.

import TestSupport
import Testing

@testable import Caching

@Suite(.onOwnThreads) struct MemoryPressureTests {
  private static let whole = 1 << 20

  /// A state with a clock that advances one second per sample.
  private struct Run {
    var pressure = MemoryPressure(limit: MemoryPressureTests.whole, threshold: 0.9)
    var now = ContinuousClock.now
    var sample = PressureSample()

    /// Takes a sample with this share once a second.
    mutating func take(_ share: Double?, seconds: Int = 1) {
      sample.share = share
      for _ in 0..<seconds {
        _ = pressure.take(sample, at: now)
        now += .seconds(1)
      }
    }

    var parts: Int { pressure.limit == 0 ? 0 : MemoryPressureTests.whole / pressure.limit }
  }

  @Test func `pressure halves the limit at once, and lasting pressure reduces it to 0`() {
    var run = Run()
    run.take(0.5)
    #expect(run.parts == 1 && !run.pressure.isActive)
    run.take(0.93)
    #expect(run.parts == 2 && run.pressure.isActive)
    // The first step has time to show.
    run.take(0.93, seconds: 4)
    #expect(run.parts == 2)
    run.take(0.93)
    #expect(run.parts == 0)
    run.take(0.93, seconds: 100)
    #expect(run.parts == 0)
    #expect(run.pressure.warnings == 1)
  }

  @Test func `stalls are pressure near the threshold only`() {
    var run = Run()
    run.sample.someStalled = 0.9
    run.take(0.5, seconds: 100)
    #expect(run.parts == 1 && run.pressure.warnings == 0)
    run.take(0.85)
    #expect(run.parts == 2)
  }

  @Test func `without a limit, full stalls are pressure`() {
    var run = Run()
    run.sample.allStalled = 0.3
    run.take(nil, seconds: 10)
    #expect(run.parts == 1)
    run.sample.allStalled = 0.4
    run.take(nil)
    #expect(run.parts == 2)
  }

  @Test func `a stall of the machine is no pressure while memory is ample`() {
    var run = Run()
    run.sample.allStalled = 1
    run.sample.free = 2 * Self.whole
    run.take(nil, seconds: 20)
    #expect(run.parts == 1)
    // With less it is, and once there is plenty again the tier has its size in seconds
    run.sample.free = 2 * Self.whole - 1
    run.take(nil, seconds: 20)
    #expect(run.parts == 0)
    run.sample.free = 2 * Self.whole
    run.take(nil, seconds: 8)
    #expect(run.parts == 1)
  }

  @Test func `the limit doubles every ten seconds without pressure`() {
    var run = Run()
    run.take(0.95, seconds: 10)
    for parts in [0, 8, 4, 2] {
      #expect(run.parts == parts)
      run.take(0.5, seconds: 10)
      if parts == 0 { run.take(0.5) }
    }
    #expect(run.parts == 1 && !run.pressure.isActive)
  }

  @Test func `just below the threshold the limit does not change in either direction`() {
    var run = Run()
    run.take(0.85, seconds: 1_000)
    #expect(run.parts == 1)
    run.take(0.91)
    run.take(0.85, seconds: 1_000)
    #expect(run.parts == 2)
    // New pressure halves the limit again.
    run.take(0.91)
    #expect(run.parts == 4)
    // Calm must last.
    for _ in 0..<100 {
      run.take(0.5, seconds: 10)
      run.take(0.85)
    }
    #expect(run.parts == 4)
  }

  @Test func `when a recovery brings pressure back, the next one waits longer`() {
    var run = Run()
    var times: [Int] = []
    for _ in 0..<7 {
      run.take(0.95)
      var time = 0
      while run.pressure.isActive {
        run.take(0.5)
        time += 1
      }
      times.append(time - 1)
      run.take(0.5, seconds: 2)
    }
    #expect(times == [10, 20, 40, 80, 160, 160, 160])
    // After a long calm the recovery time is reset.
    run.take(0.5, seconds: 1_600)
    run.take(0.95)
    run.take(0.5, seconds: 11)
    #expect(!run.pressure.isActive)
    #expect(run.pressure.warnings == 8)
  }

  /// Invariants for any samples, over 50,000 random seconds.
  @Test(arguments: [1, 2, 3])
  func `the limit never falls without pressure, never rises under it, and settles`(seed: Int) {
    var random = SeededGenerator(seed: UInt64(seed))
    var run = Run()
    var broken: [String] = []
    var calm = 0
    var pressed = 0
    var empties = 0
    for second in 0..<50_000 {
      // Long runs of one kind of sample, so that every state is reached.
      if Int.random(in: 0..<100, using: &random) == 0 {
        run.sample.someStalled = [nil, 0, 0.3].randomElement(using: &random) ?? nil
        run.sample.allStalled = [nil, 0, 0.1, 0.5].randomElement(using: &random) ?? nil
        run.sample.share = [nil, 0.2, 0.7, 0.85, 0.95].randomElement(using: &random) ?? nil
      }
      let before = run.pressure
      run.take(run.sample.share)
      let share = run.sample.share ?? 0
      let isStalled = (run.sample.allStalled ?? 0) >= 0.4
      calm = share < 0.81 && !isStalled ? calm + 1 : 0
      pressed = share >= 0.9 || isStalled ? pressed + 1 : 0
      let old = before.limit
      let new = run.pressure.limit
      if ![0, 1, 2, 4, 8].contains(run.parts) { broken.append("\(second): \(new)") }
      if new < old && calm > 0 { broken.append("\(second): lowered in calm") }
      if new > old && calm <= 10 { broken.append("\(second): raised after \(calm) s") }
      if new > max(old * 2, Self.whole / 8) { broken.append("\(second): \(old) to \(new)") }
      if pressed > 5 && new > 0 { broken.append("\(second): \(new) after \(pressed) s") }
      if calm > 700 && new < Self.whole { broken.append("\(second): \(new) in calm") }
      if run.pressure.warnings < before.warnings { broken.append("\(second): a warning less") }
      if new == 0 { empties += 1 }
    }
    #expect(broken.isEmpty)
    #expect(empties > 1_000 && run.pressure.warnings > 30)
    run.sample.allStalled = nil
    run.take(0.1, seconds: 700)
    #expect(run.parts == 1)
  }
}
