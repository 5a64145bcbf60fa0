// WorkerLossTests: the errors of jobs whose workers were lost, and the choice of the OOM killer.

import Core
import Glibc
import TestSupport
import Testing

@testable import ImagingPool

@Suite(.onOwnThreads, .serialized, .timeLimit(.minutes(1))) struct WorkerLossTests {
  /// Kills the first two workers of a job with a signal.
  private func failure(byTwo signal: CInt) async throws -> (ImageError?, lost: Int) {
    var configuration = PoolSupport.configuration()
    let stops = FirstWorker(count: 2)
    configuration.willSend = { pid in if stops.isFirst() { kill(pid, SIGSTOP) } }
    var failure: ImageError?
    var lost = 0
    try await PoolSupport.withPool(configuration) { pool in
      let task = Task { try await pool.process(PoolSupport.job()) }
      var victims: Set<pid_t> = []
      while victims.count < 2 {
        try await eventually("a worker has the job") {
          pool.busyPID.map { !victims.contains($0) } ?? false
        }
        let victim = try #require(pool.busyPID)
        victims.insert(victim)
        kill(victim, signal)
        kill(victim, SIGCONT)
      }
      do { _ = try await task.value } catch { failure = error as? ImageError }
      lost = pool.figures.workersLost.whole
      // The next job finds a worker.
      _ = try await pool.process(PoolSupport.job())
    }
    return (failure, lost)
  }

  @Test func `a job whose workers are killed fails as overloaded, not undecodable`()
    async throws
  {
    let (failure, lost) = try await failure(byTwo: SIGKILL)
    let error = try #require(failure)
    #expect(error.status == 503 && error.code == "overloaded" && error.retryAfter == 5)
    #expect(!error.isOfSource)
    #expect(lost == 2)
  }

  @Test func `a job that crashes two workers makes only its variant undecodable`() async throws {
    let (failure, lost) = try await failure(byTwo: SIGSEGV)
    guard case .ofVariant(.undecodable) = failure else {
      Issue.record("\(String(describing: failure))")
      return
    }
    #expect(lost == 2)
  }

  @Test func `the job of a killed worker is retried when no other job runs`() async throws {
    // Given: two jobs whose workers stop before they read them
    var configuration = PoolSupport.configuration(workers: 2)
    let stops = Gauge(2)
    let sent = Gauge(0)
    configuration.willSend = { pid in
      sent.add(1)
      if stops.value > 0 {
        stops.add(-1)
        kill(pid, SIGSTOP)
      }
    }
    try await PoolSupport.withPool(configuration) { pool in
      try await eventually("two workers") { pool.pids.count == 2 }
      let first = Task { try await pool.process(PoolSupport.job(width: 11)) }
      try await eventually("the first job runs") { pool.busyPID != nil }
      let survivor = try #require(pool.busyPID)
      let second = Task { try await pool.process(PoolSupport.job(width: 22)) }
      try await eventually("the second job runs") {
        pool.workerPIDs.filter(\.isBusy).count == 2
      }
      let victim = try #require(pool.workerPIDs.first { $0.isBusy && $0.pid != survivor }?.pid)
      // When
      kill(victim, SIGKILL)
      try await eventually("the worker is lost") { pool.figures.workersLost == 1 }
      let third = Task { try await pool.process(PoolSupport.job(width: 33)) }
      try await eventually("the third job waits") { pool.figures.waiting == 1 }
      // Then: only the first worker has a job
      #expect(sent.value == 2)
      kill(survivor, SIGCONT)
      #expect(try await first.value.rendered?.size.width == 11)
      #expect(try await second.value.rendered?.size.width == 22)
      #expect(try await third.value.rendered?.size.width == 33)
      #expect(pool.figures.failed == [:])
    }
  }

  @Test(.enabled(if: !TestBuild.isThreadSanitized))
  func `a job that exceeds all memory of a new worker is too costly, and only its variant`()
    async throws
  {
    // Given: limits slightly above an idle worker's memory, and a job that holds 63 MB
    var transform = Transform()
    transform.width = 3_900
    transform.format = .png
    transform.maxBytes = 1 << 30
    let svg =
      #"<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><path d="M0 0h9v9z"/></svg>"#
    let job = ImageJob(
      file: try PoolSupport.file(of: Array(svg.utf8)), transform: transform, density: 1)
    for mebibytes in [48, 64] {
      var configuration = PoolSupport.configuration()
      configuration.maximumWorkerMemory = mebibytes << 20
      try await PoolSupport.withPool(configuration) { pool in
        // When
        var failure: ImageError?
        do { _ = try await pool.process(job) } catch { failure = error as? ImageError }
        // Then
        guard case .ofVariant(.tooCostly(let reason, key: ImagingLimits.memoryKey)) = failure else {
          Issue.record("\(mebibytes) MiB: \(String(describing: failure))")
          return
        }
        #expect(reason.contains("\(mebibytes) MiB"))
        #expect(failure?.isOfSource == false)
        // And a smaller job succeeds.
        _ = try await pool.process(PoolSupport.job())
      }
    }
  }

  @Test func `the OOM killer prefers workers to the server`() async throws {
    try await PoolSupport.withPool { pool in
      let pid = try #require(pool.pids.first)
      // A score that is higher already stays, and this process keeps its own.
      #expect(try score(of: "\(pid)") == max(900, score(of: "self")))
      #expect(try score(of: "self") == score(of: "\(getppid())"))
    }
  }

  private func score(of process: String) throws -> Int {
    let file = try #require(fopen("/proc/\(process)/oom_score_adj", "r"))
    defer { fclose(file) }
    var line = [CChar](repeating: 0, count: 32)
    _ = fgets(&line, 32, file)
    return Int(atoi(line))
  }

  // MARK: Processor time

  /// Returns a job that takes a part of a second of processor time to decode.
  private func costlyJob(_ change: (inout Transform) -> Void = { _ in }) throws -> ImageJob {
    let png = TestImages.blackPNG(width: 5_000, height: 4_000, isDeep: true)
    var transform = Transform()
    change(&transform)
    return ImageJob(
      file: try PoolSupport.file(of: png), transform: transform, density: 1,
      source: SourceIdentity(key: CacheKey(text: "http://h/a.png"), version: 7))
  }

  @Test func `exceeding the processor time is the source's fault only for undemanding transforms`()
    async throws
  {
    var configuration = PoolSupport.configuration()
    configuration.processorTime = .milliseconds(100)
    let first = FirstWorker()
    configuration.willSend = { pid in if first.isFirst() { kill(pid, SIGSTOP) } }
    // Images this large take long to make, and the first job has a deadline.
    let (job, same) = (try costlyJob(), try costlyJob { $0.quality = 9 })
    try await PoolSupport.withPool(configuration) { pool in
      // Given: one that runs; others of the same source and of another source are queued
      let plain = Task { try await pool.process(job) }
      try await eventually("a worker has it") { pool.busyPID != nil }
      let waiting = Task { try await pool.process(same) }
      let other = Task { try await pool.process(PoolSupport.job()) }
      try await eventually("two wait") { pool.figures.waiting == 2 }
      kill(try #require(pool.busyPID), SIGCONT)
      // When, then: both jobs of that source fail after one attempt
      for task in [plain, waiting] {
        await #expect { try await task.value } throws: {
          ($0 as? ImageError)?.code == "too_costly" && ($0 as? ImageError)?.isOfSource == true
        }
      }
      _ = try await other.value
      #expect(pool.figures.workersLost == 1)
      // With a more demanding transform, only the variant is at fault.
      await #expect { try await pool.process(self.costlyJob { $0.effects.blur = 2 }) } throws: {
        ($0 as? ImageError)?.code == "too_costly" && ($0 as? ImageError)?.isOfSource == false
      }
    }
  }

  // MARK: The rules

  private static let killed = WorkerEnd(status: SIGKILL)
  private static let crashed = WorkerEnd(status: SIGSEGV)
  private static let bound = WorkerEnd(
    status: SIGTRAP, lastWords: "GLib-ERROR: failed to allocate 8000000 bytes")

  @Test(arguments: [
    (WorkerEnd(status: SIGKILL), WorkerEnd.Cause.killed), (WorkerEnd(status: nil), .killed),
    (WorkerEnd(status: SIGSEGV), .crash), (WorkerEnd(status: SIGBUS), .crash),
    (WorkerEnd(status: SIGFPE), .crash), (WorkerEnd(status: 1 << 8), .crash),
    (WorkerEnd(status: SIGABRT, lastWords: "double free or corruption"), .crash),
    (bound, .memoryBound),
    (WorkerEnd(status: SIGABRT, lastWords: "what():  std::bad_alloc"), .memoryBound),
    (WorkerEnd(status: SIGABRT, lastWords: "memory allocation of 9 bytes failed"), .memoryBound),
    // With a core file.
    (WorkerEnd(status: SIGSEGV | 0x80), .crash),
  ])
  func `a worker's end maps to its cause`(end: WorkerEnd, cause: WorkerEnd.Cause) {
    #expect(end.cause == cause)
  }

  private func deaths() -> JobDeaths { JobDeaths(workerMemory: 1 << 30) }

  @Test func `only two crashes make the variant undecodable`() {
    for (first, second) in [
      (Self.crashed, Self.crashed), (Self.crashed, Self.killed), (Self.killed, Self.crashed),
      (Self.killed, Self.killed), (Self.bound, Self.killed), (Self.bound, Self.crashed),
    ] {
      var deaths = deaths()
      let verdict = deaths.add(first, isFresh: false, isHeld: false)
      #expect(verdict == (first == Self.killed ? .againAlone : .again))
      guard case .giveUp(let failure) = deaths.add(second, isFresh: true, isHeld: false) else {
        Issue.record("\(first), \(second): tried a third time")
        continue
      }
      let isCrash = first == Self.crashed && second == Self.crashed
      #expect(failure.code == (isCrash ? "undecodable" : "overloaded"))
      #expect(!failure.isOfSource)
    }
  }

  @Test func `a new worker that reaches its memory limit makes the variant too costly`() {
    for first in [nil, Self.crashed, Self.killed, Self.bound] {
      var deaths = deaths()
      if let first { _ = deaths.add(first, isFresh: false, isHeld: false) }
      guard
        case .giveUp(.ofVariant(.tooCostly(_, key: ImagingLimits.memoryKey))) = deaths.add(
          Self.bound, isFresh: true, isHeld: false)
      else {
        Issue.record("\(String(describing: first)): another verdict")
        continue
      }
    }
  }

  @Test
  func `a memory limit says nothing of a worker with less, with earlier jobs, or without a limit`()
  {
    for (memory, isFresh, isHeld) in [
      (1 << 30, true, true), (1 << 30, false, false), (nil, true, false),
    ] as [(Int?, Bool, Bool)] {
      var deaths = JobDeaths(workerMemory: memory)
      _ = deaths.add(Self.crashed, isFresh: false, isHeld: false)
      guard case .giveUp(.outOfMemory) = deaths.add(Self.bound, isFresh: isFresh, isHeld: isHeld)
      else {
        Issue.record("another verdict")
        continue
      }
    }
  }
}
