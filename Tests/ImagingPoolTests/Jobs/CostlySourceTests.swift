// CostlySourceTests: sources whose jobs take far longer than estimated leave slots to others.

import Core
import Glibc
import TestSupport
import Testing

@testable import ImagingPool

@Suite(.onOwnThreads) struct CostlySourcesTests {
  private let now = ContinuousClock.now

  private func source(_ name: String, version: UInt64 = 1) -> SourceIdentity {
    SourceIdentity(key: CacheKey(text: "http://h/\(name)"), version: version)
  }

  private func transform(_ change: (inout Transform) -> Void) -> Transform {
    var transform = Transform()
    change(&transform)
    return transform
  }

  @Test func `a source is remembered for ten minutes, in each of its versions apart`() {
    var sources = CostlySources()
    sources.add(source("a"), now: now)
    #expect(sources.contains(source("a"), now: now + .seconds(599)))
    #expect(!sources.contains(source("a", version: 2), now: now))
    // Another such job prolongs it.
    sources.add(source("a"), now: now + .seconds(500))
    #expect(sources.contains(source("a"), now: now + .seconds(1_099)))
    #expect(!sources.contains(source("a"), now: now + .seconds(1_100)))
  }

  @Test func `the number of remembered sources is bounded`() {
    var sources = CostlySources()
    for number in 0...CostlySources.limit { sources.add(source("\(number)"), now: now) }
    #expect(sources.count == CostlySources.limit)
    #expect(!sources.contains(source("0"), now: now) && sources.contains(source("1"), now: now))
  }

  @Test func `two different undemanding variants blame the source, demanding ones do not`() {
    var sources = CostlySources()
    func stopped(_ name: String, _ change: (inout Transform) -> Void) -> Bool {
      sources.stopped(source(name), transform(change), now: now)
    }
    // Given: one variant, twice, and another source
    #expect(!stopped("a") { $0.quality = 7 })
    #expect(!stopped("a") { $0.quality = 7 })
    #expect(!stopped("b") { $0.quality = 8 })
    for _ in 0..<2 {
      #expect(!stopped("a") { $0.effects.blur = 20 })
      #expect(!stopped("a") { $0.format = .avif })
      #expect(!stopped("a") { $0.format = .gif })
      #expect(!stopped("a") { $0.maxBytes = 1_000 })
      #expect(!stopped("a") { $0.output.accepted = [.jxl] })
    }
    // When, then
    #expect(stopped("a") { $0.quality = 8 })
    #expect(stopped("a") { $0.format = .png })
  }
}

@Suite(.onOwnThreads) struct OverrunTests {
  private let now = ContinuousClock.now

  private func board(slots: Int, limit: Int = 99) -> JobScheduler<String> {
    var board = JobScheduler<String>(slots: slots, limit: limit)
    for _ in 0..<slots { board.enter() }
    return board
  }

  private func take(_ board: inout JobScheduler<String>, slot: Int) -> String? {
    guard case .job(_, let job) = board.next(slot: slot, isReady: true, now: now) else {
      return nil
    }
    return job
  }

  @Test(arguments: [(1, 1), (2, 1), (3, 2), (4, 2), (8, 4)])
  func `when quick jobs take long, all but half of the slots come back once another waits`(
    slots: Int, long: Int
  ) {
    // Given: each slot has a job that was thought to be quick
    var board = board(slots: slots)
    for id in 1...slots {
      _ = board.submit(UInt64(id), job: "costly", priority: .normal)
      #expect(take(&board, slot: id - 1) == "costly")
    }
    for id in 1...slots { board.overran(UInt64(id)) }
    // Then: while no other waits, they continue
    #expect(board.overrunInTheWay == nil)
    // When
    for id in 0..<slots { _ = board.submit(UInt64(100 + id), job: "small", priority: .normal) }
    // Then: the last ones give way, one after another
    var small = 0
    while let (id, slot) = board.overrunInTheWay {
      #expect(id == UInt64(slots - small) && slot == slots - small - 1)
      #expect(board.orders(for: id).givesWay)
      let isQueued = board.giveWay(id)
      #expect(isQueued)
      #expect(take(&board, slot: slot) == "small")
      small += 1
    }
    #expect(small == slots - long)
    // They start again when others have ended, as expensive jobs, and give way no more.
    #expect(board.finish(1) == "costly")
    guard small > 0 else { return }
    for id in 0..<slots { _ = board.cancel(UInt64(100 + id)) }
    #expect(take(&board, slot: 0) == "costly")
    #expect(board.bytesOfLong(UInt64(slots)) == 0)
    #expect(board.overrunInTheWay == nil)
  }

  @Test func `jobs of a costly source start behind others and have half of the slots`() {
    var board = board(slots: 2)
    for slot in 0..<2 { #expect(take(&board, slot: slot) == nil) }
    func submit(_ id: UInt64, _ job: String) -> Int? {
      guard
        case .next(let slot) = board.submit(
          id, job: job, priority: .high, isExpensive: job == "costly")
      else { return nil }
      return slot
    }
    #expect(submit(1, "costly") == 1)
    #expect(take(&board, slot: 1) == "costly")
    #expect(submit(2, "costly") == nil)
    #expect(submit(3, "small") == 0)
    #expect(take(&board, slot: 0) == "small")
    #expect(submit(4, "small") == nil)
    #expect(board.finish(3) == "small")
    #expect(take(&board, slot: 0) == "small")
    #expect(board.finish(1) == "costly")
    #expect(take(&board, slot: 1) == "costly")
    // The queue's limit counts for them, too.
    var full = self.board(slots: 1, limit: 0)
    guard
      case .refused(.overloaded) = full.submit(1, job: "costly", priority: .high, isExpensive: true)
    else {
      Issue.record("admitted")
      return
    }
  }

  @Test func `queued jobs of a costly source move behind others, in their order`() {
    var board = board(slots: 1)
    for (id, job) in ["a1", "b1", "a2", "b2"].enumerated() {
      _ = board.submit(UInt64(id), job: job, priority: id == 0 ? .high : .normal)
    }
    board.postponeWaiting { $0.hasPrefix("a") }
    // A raise does not bring them back.
    board.raise(0, to: .high)
    for expected in ["b1", "b2", "a1", "a2"] {
      #expect(take(&board, slot: 0) == expected)
      let id = UInt64(["a1", "b1", "a2", "b2"].firstIndex(of: expected) ?? 9)
      #expect(board.finish(id) == expected)
    }
    #expect(board.waitingCount == 0)
  }

  @Test func `a cancelled or expensive job does not give way`() {
    var board = board(slots: 2)
    for id in 1...2 as ClosedRange<UInt64> {
      _ = board.submit(id, job: "costly", priority: .normal)
      #expect(take(&board, slot: Int(id) - 1) == "costly")
    }
    // Given: one was admitted as expensive
    let continues = board.takesLong(1, bytes: 7)
    #expect(continues)
    board.overran(1)
    #expect(board.bytesOfLong(1) == 7)
    board.overran(2)
    _ = board.submit(3, job: "small", priority: .normal)
    #expect(board.overrunInTheWay?.id == 2)
    // When
    #expect(board.cancel(2)?.job == "costly")
    // Then
    #expect(board.overrunInTheWay == nil)
    let isQueued = board.giveWay(2)
    #expect(!isQueued)
    #expect(take(&board, slot: 1) == "small")
  }
}

@Suite(.onOwnThreads, .serialized, .timeLimit(.minutes(2))) struct CostlySourcePoolTests {
  /// Returns a job that keeps librsvg busy for half a minute: gradients that no estimate finds.
  private func job(width: Int, _ change: (inout Transform) -> Void = { _ in }) throws -> ImageJob {
    let uses = String(repeating: ##"<use href="#a"/>"##, count: 3_000)
    let svg =
      ##"<svg xmlns="http://www.w3.org/2000/svg" width="1000" height="1000"><defs>"##
      + ##"<radialGradient id="r"><stop stop-color="red" stop-opacity=".5"/>"##
      + ##"<stop offset="1" stop-color="blue" stop-opacity=".2"/></radialGradient>"##
      + ##"<rect id="a" width="1000" height="1000" fill="url(#r)"/></defs>\##(uses)</svg>"##
    var transform = Transform()
    transform.width = width
    transform.format = .png
    change(&transform)
    return ImageJob(
      file: try PoolSupport.file(of: Array(svg.utf8)), transform: transform, density: 1,
      source: SourceIdentity(key: CacheKey(text: "http://h/a.svg"), version: 7))
  }

  @Test func `ten jobs of a costly source leave a slot to another source's job`() async throws {
    // Given: two workers, and a source whose cost is not estimated
    var configuration = PoolSupport.configuration(workers: 2)
    configuration.quickTime = .seconds(1)
    configuration.processorTime = .seconds(600)
    configuration.jobDeadline = .seconds(600)
    try await PoolSupport.withPool(configuration) { pool in
      try await eventually("idle workers") { pool.idleWorkers == 2 }
      let ended = Lock(0)
      // All begin before the first one has taken the time that makes it an expensive one.
      let jobs = try (0..<10).map { try self.job(width: 900 + $0) }
      let costly = jobs.map { job in
        Task {
          _ = try? await pool.process(job)
          ended.withLock { $0 += 1 }
        }
      }
      try await eventually("both workers have one") {
        pool.figures.running == 2 && pool.figures.waiting == 8
      }
      // When
      _ = try await pool.process(PoolSupport.job())
      // Then: not one of them has ended, and later jobs find the same slot
      #expect(ended.withLock { $0 } == 0)
      for width in 1...3 { _ = try await pool.process(PoolSupport.job(width: width)) }
      #expect(ended.withLock { $0 } == 0)
      // A new variant of the source waits with the others.
      let eleventh = Task { _ = try? await pool.process(try self.job(width: 300)) }
      try await eventually("one runs, ten wait") {
        pool.figures.running == 1 && pool.figures.waiting == 10
      }
      for task in costly + [eleventh] { task.cancel() }
      for task in costly + [eleventh] { _ = await task.value }
    }
  }

  @Test func `a second variant that exceeds the processor time blames the source`() async throws {
    var configuration = PoolSupport.configuration()
    configuration.processorTime = .milliseconds(300)
    configuration.jobDeadline = .seconds(100)
    try await PoolSupport.withPool(configuration) { pool in
      func isOfSource(_ width: Int) async -> Bool? {
        do {
          _ = try await pool.process(try self.job(width: width))
          return nil
        } catch {
          let error = error as? ImageError
          return error?.code == "too_costly" ? error?.isOfSource : nil
        }
      }
      #expect(await isOfSource(900) == false)
      #expect(await isOfSource(900) == false)
      #expect(await isOfSource(901) == true)
    }
  }
}
