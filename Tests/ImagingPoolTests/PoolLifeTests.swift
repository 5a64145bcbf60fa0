// PoolLifeTests: how pools start and stop, and what workers inherit.

import Core
import FoundationEssentials
import Glibc
import TestSupport
import Testing

@testable import ImagingPool

@Suite(.onOwnThreads, .serialized, .timeLimit(.minutes(1))) struct PoolLifeTests {
  @Test func `a missing worker program is reported in one error`() {
    let pool = ImagerPool(
      configuration: ImagerPoolConfiguration(executable: "/nowhere/pictor-imager"), log: .silent)
    #expect {
      try pool.start()
    } throws: {
      "\($0)" == "cannot start the worker /nowhere/pictor-imager: No such file or directory (2)"
    }
  }

  @Test func `a program that is not executable or ends at once is reported in one error`() {
    for (path, part) in [("/etc/passwd", "Permission denied"), ("/bin/false", "exit status 1")] {
      let pool = ImagerPool(
        configuration: ImagerPoolConfiguration(executable: path), log: .silent)
      #expect {
        try pool.start()
      } throws: {
        "\($0)".hasPrefix("cannot start the worker \(path): ") && "\($0)".contains(part)
      }
    }
  }

  @Test func `a program that never becomes ready fails at the deadline`() throws {
    // Given: a program that never becomes ready
    let folder = try TemporaryFolder()
    let path = try folder.writeProgram("sleeper", script: "#!/bin/sh\nexec sleep 60\n")
    var configuration = ImagerPoolConfiguration(executable: path)
    configuration.startDeadline = .milliseconds(100)
    let pool = ImagerPool(configuration: configuration, log: .silent)
    // Then
    #expect { try pool.start() } throws: {
      $0 is ImagerStartError && "\($0)".hasSuffix("sleeper: it was not ready in time")
    }
  }

  @Test func `a job is answered before upkeep of its worker`() async throws {
    // Given a pool whose upkeep of the worker waits until the answer arrives, for at most 5 s
    let isAnswered = Lock(false)
    let wasAnswered = Lock<Bool?>(nil)
    var configuration = PoolSupport.configuration()
    configuration.willTidy = { _ in
      // This is the slot's own thread, which may block.
      let deadline = ContinuousClock.now + .seconds(5)
      while !isAnswered.withLock({ $0 }), .now < deadline { usleep(1_000) }
      wasAnswered.withLock { $0 = isAnswered.withLock { $0 } }
    }
    try await PoolSupport.withPool(configuration) { pool in
      // When
      _ = try await pool.process(PoolSupport.job())
      isAnswered.withLock { $0 = true }
      // Then
      try await eventually("the end of the job") { wasAnswered.withLock { $0 } != nil }
      #expect(wasAnswered.withLock { $0 } == true)
    }
  }

  @Test(.disabled(if: TestBuild.isThreadSanitized, "the sanitizer's malloc gives nothing back"))
  func `an idle worker returns the memory of large images`() async throws {
    let source = try TestImages.avif(width: 2_048, height: 2_048)
    try await PoolSupport.withPool { pool in
      // Given: a worker that keeps memory of its jobs. After some jobs malloc has nothing to keep.
      let pid = try #require(pool.pids.first)
      let fresh = try PoolSupport.ownBytes(of: pid)
      let job = ImageJob(
        file: try PoolSupport.file(of: source), transform: Transform(), density: 1)
      var busy = fresh
      try await eventually("a worker keeps memory") {
        _ = try await pool.process(job)
        busy = try PoolSupport.ownBytes(of: pid)
        return busy > 3 * fresh
      }
      // When a second has passed, then half of its memory is returned
      try await eventually("trimming") {
        (try? PoolSupport.ownBytes(of: pid)).map { $0 < busy / 2 } ?? false
      }
      #expect(pool.pids == [pid])
    }
  }

  @Test func `a pool cannot be started twice, and refuses jobs before its start`() async throws {
    let pool = ImagerPool(configuration: PoolSupport.configuration(), log: .silent)
    await #expect(throws: ImageError.self) { try await pool.process(PoolSupport.job()) }
    try pool.start()
    #expect(throws: ImagerStartError.self) { try pool.start() }
    _ = try await pool.process(PoolSupport.job())
    await pool.shutDown(within: .seconds(1))
  }

  @Test func `a worker inherits no descriptors and survives Ctrl-C`() async throws {
    var configuration = PoolSupport.configuration(workers: 2)
    if !TestBuild.seesClosedProcesses { configuration.settings.sandbox = .off }
    try await PoolSupport.withPool(configuration) { pool in
      try await eventually("both are ready") { pool.pids.count == 2 }
      _ = try await pool.process(PoolSupport.job())
      for pid in pool.pids {
        // A job's descriptors are closed just after its answer.
        try await eventually("five descriptors, and those of its own figures and of its niceness") {
          let files = FileManager.default
          let folder = "/proc/\(pid)/fd"
          guard let open = try? files.contentsOfDirectory(atPath: folder) else { return false }
          // An open worker opens its figures with its first job; its niceness waits to be set.
          let others = Set(open).subtracting(["0", "1", "2", "3", "4"])
          let targets = others.map {
            try? files.destinationOfSymbolicLink(atPath: "\(folder)/\($0)")
          }
          return open.count == others.count + 5
            && targets.allSatisfy {
              $0?.hasSuffix("/statm") ?? false || $0?.hasSuffix("/autogroup") ?? false
            }
        }
        let environment = try Data(contentsOf: URL(fileURLWithPath: "/proc/\(pid)/environ"))
        let names = environment.split(separator: 0).map {
          String(decoding: $0.prefix { $0 != UInt8(ascii: "=") }, as: UTF8.self)
        }
        #expect(
          Set(names).isSubset(of: [
            "SWIFT_BACKTRACE", "MALLOC_ARENA_MAX", "G_SLICE", "OMP_NUM_THREADS",
          ]))
        let limits = try String(contentsOfFile: "/proc/\(pid)/limits", encoding: .utf8)
        #expect(limits.contains(try Regex("Max core file size +[01] +[01] ")))
        let status = try String(contentsOfFile: "/proc/\(pid)/status", encoding: .utf8)
        #expect(status.contains("NoNewPrivs:\t1"))
        // When: Ctrl-C in the terminal and a service manager's SIGTERM reach the worker
        kill(pid, SIGINT)
        kill(pid, SIGTERM)
      }
      let before = pool.pids
      for _ in 0..<4 { _ = try await pool.process(PoolSupport.job()) }
      #expect(pool.pids == before)
    }
  }

  @Test(.disabled(if: TestBuild.isThreadSanitized, "a sanitizer's shadow memory has no bound"))
  func `a worker's memory is limited`() async throws {
    var configuration = PoolSupport.configuration()
    configuration.maximumWorkerMemory = 123 << 20
    try await PoolSupport.withPool(configuration) { pool in
      let pid = try #require(pool.pids.first)
      let limits = try String(contentsOfFile: "/proc/\(pid)/limits", encoding: .utf8)
      #expect(limits.contains(try Regex("Max data size +\(123 << 20) ")))
      #expect(limits.contains(try Regex("Max file size +\(512 << 20) ")))
    }
  }

  @Test func `after shutdown no worker, zombie or descriptor remains`() async {
    // In a process of its own, because it counts all descriptors.
    await #expect(processExitsWith: .success) {
      // Given: all descriptors that are opened once per process are open
      try await Task.sleep(for: .milliseconds(1))
      try await PoolSupport.withPool { _ = try await $0.process(PoolSupport.job()) }
      let before = try Self.openFiles()
      var pids: Set<pid_t> = []
      // When
      for _ in 0..<3 {
        try await PoolSupport.withPool(PoolSupport.configuration(workers: 3)) { pool in
          for _ in 0..<5 { _ = try await pool.process(PoolSupport.job()) }
          pids.formUnion(pool.pids)
        }
      }
      // Then
      #expect(!pids.isEmpty && pids.allSatisfy { !PoolSupport.exists($0) })
      var now = before
      do {
        try await eventually("as few descriptors as before") {
          now = try Self.openFiles()
          return now.count <= before.count
        }
      } catch {
        Issue.record("\(now) instead of \(before)")
      }
    }
  }

  /// Returns what the descriptors of this process are open for, sorted. Those of Dispatch's timers
  /// are left out: it opens one for each clock when its own thread gets to it, and a pool has none.
  private static func openFiles() throws -> [String] {
    let files = FileManager.default
    let folder = "/proc/self/fd"
    return try files.contentsOfDirectory(atPath: folder).compactMap {
      try? files.destinationOfSymbolicLink(atPath: "\(folder)/\($0)")
    }.filter { !$0.contains("[timerfd]") && !$0.contains("[eventpoll]") }.sorted()
  }

  @Test func `shutdown finishes admitted jobs and refuses new ones`() async throws {
    var configuration = PoolSupport.configuration()
    let first = FirstWorker()
    configuration.willSend = { pid in if first.isFirst() { kill(pid, SIGSTOP) } }
    let pool = ImagerPool(configuration: configuration, log: .silent)
    try pool.start()
    let running = Task { try await pool.process(PoolSupport.job()) }
    try await eventually("running") { pool.busyPID != nil }
    let waiting = Task { try await pool.process(PoolSupport.job()) }
    try await eventually("waiting") { pool.figures.waiting == 1 }
    let worker = try #require(pool.busyPID)
    // When
    async let end: Void = pool.shutDown(within: .seconds(20))
    var refused: ImageError?
    while refused == nil {
      do {
        _ = try await withTimeout(.milliseconds(20)) { try await pool.process(PoolSupport.job()) }
      } catch let error as ImageError where error != .cancelled {
        refused = error
      } catch {}
    }
    #expect(refused == .draining)
    kill(worker, SIGCONT)
    // Then
    _ = try await running.value
    _ = try await waiting.value
    await end
    #expect(!PoolSupport.exists(worker))
  }

  @Test func `jobs that exceed the shutdown time fail, and their workers are killed`() async throws
  {
    var configuration = PoolSupport.configuration()
    configuration.willSend = { pid in kill(pid, SIGSTOP) }
    let pool = ImagerPool(configuration: configuration, log: .silent)
    try pool.start()
    let running = Task { try await pool.process(PoolSupport.job()) }
    try await eventually("running") { pool.busyPID != nil }
    let waiting = Task { try await pool.process(PoolSupport.job()) }
    try await eventually("waiting") { pool.figures.waiting == 1 }
    let worker = try #require(pool.busyPID)
    await pool.shutDown(within: .milliseconds(50))
    await #expect(throws: ImageError.draining) { try await running.value }
    await #expect(throws: ImageError.draining) { try await waiting.value }
    #expect(!PoolSupport.exists(worker))
  }

  @Test func `a worker exits when the server closes the connection`() throws {
    // Given: a ready worker
    var worker: WorkerProcess? = try WorkerProcess(PoolSupport.configuration())
    let pid = try #require(worker?.pid)
    let socket = worker?.socket.descriptor ?? -1
    #expect(Poll.wait(for: [socket], until: .now + .seconds(10)) == [true])
    // When: the server's resources for the worker are released, without a kill
    worker = nil
    // Then
    #expect(WorkerProcess.reap(pid, within: .seconds(10))?.description == "exit status 0")
  }

  @Test func `a released pool ends its workers`() async throws {
    var pool: ImagerPool? = ImagerPool(
      configuration: PoolSupport.configuration(workers: 2), log: .silent)
    try pool?.start()
    try await eventually("two workers") { pool?.pids.count == 2 }
    let pids = pool?.pids ?? []
    pool = nil
    try await eventually("no workers") { !pids.contains(where: PoolSupport.exists) }
  }

  private func withTimeout<Value: Sendable>(
    _ duration: Duration, body: @escaping @Sendable () async throws -> Value
  ) async throws -> Value {
    try await withThrowingTaskGroup(of: Value.self) { group in
      group.addTask { try await body() }
      group.addTask {
        try await Task.sleep(for: duration)
        throw CancellationError()
      }
      defer { group.cancelAll() }
      guard let value = try await group.next() else { throw CancellationError() }
      return value
    }
  }
}
