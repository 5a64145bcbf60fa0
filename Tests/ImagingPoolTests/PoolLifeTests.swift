// PoolLifeTests: how pools start and stop, and what workers inherit.

import FoundationEssentials
import Glibc
import ImagingWire
import Model
import Platform
import Telemetry
import TestSupport
import Testing

@testable import ImagingPool

@Suite(.onOwnThreads, .serialized, .timeLimit(.minutes(1))) struct PoolLifeTests {
  @Test func `a missing program is one clear error`() {
    let pool = ImagerPool(
      configuration: ImagerPoolConfiguration(executable: "/nowhere/pictor-imager"), log: .silent)
    #expect {
      try pool.start()
    } throws: {
      "\($0)" == "cannot start the worker /nowhere/pictor-imager: No such file or directory (2)"
    }
  }

  @Test func `a program that is none, or ends at once, is one clear error`() {
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

  @Test func `a program that never gets ready is given up at the deadline`() throws {
    // Given: a program that never becomes ready
    let folder =
      FileManager.default.temporaryDirectory.path + "/pictor-\(UInt64.random(in: 0 ... .max))"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let path = folder + "/sleeper"
    try "#!/bin/sh\nexec sleep 60\n".write(toFile: path, atomically: true, encoding: .utf8)
    chmod(path, 0o755)
    var configuration = ImagerPoolConfiguration(executable: path)
    configuration.startDeadline = .milliseconds(100)
    let pool = ImagerPool(configuration: configuration, log: .silent)
    // Then
    #expect { try pool.start() } throws: {
      $0 is ImagerStartError && "\($0)".hasSuffix("sleeper: it took too long")
    }
  }

  @Test func `a job is answered before its worker is looked after`() async throws {
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
      try await PoolSupport.eventually("the end of the job") { wasAnswered.withLock { $0 } != nil }
      #expect(wasAnswered.withLock { $0 } == true)
    }
  }

  @Test(.disabled(if: PoolSupport.isThreadSanitized, "the sanitizer's malloc gives nothing back"))
  func `a worker with nothing to do gives back what large images took`() async throws {
    let source = try TestImages.avif(width: 2_048, height: 2_048)
    try await PoolSupport.withPool { pool in
      // Given
      let pid = try #require(pool.pids.first)
      let job = ImageJob(
        file: try PoolSupport.file(of: source), transform: Transform(), density: 1)
      for _ in 0..<3 { _ = try await pool.process(job) }
      let busy = try PoolSupport.ownBytes(of: pid)
      // When a second has passed, then half of its memory is returned
      try await PoolSupport.eventually("trimming") {
        (try? PoolSupport.ownBytes(of: pid)).map { $0 < busy / 2 } ?? false
      }
      #expect(pool.pids == [pid])
    }
  }

  @Test func `a pool cannot be started twice, and does nothing before it is`() async throws {
    let pool = ImagerPool(configuration: PoolSupport.configuration(), log: .silent)
    await #expect(throws: ImageError.self) { try await pool.process(PoolSupport.job()) }
    try pool.start()
    #expect(throws: ImagerStartError.self) { try pool.start() }
    _ = try await pool.process(PoolSupport.job())
    await pool.shutDown(within: .seconds(1))
  }

  @Test func `a worker inherits nothing and outlives a Ctrl-C`() async throws {
    try await PoolSupport.withPool(PoolSupport.configuration(workers: 2)) { pool in
      try await PoolSupport.eventually("both are ready") { pool.pids.count == 2 }
      _ = try await pool.process(PoolSupport.job())
      for pid in pool.pids {
        // A job's descriptors are closed just after its answer.
        try await PoolSupport.eventually("four descriptors") {
          let open = try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(pid)/fd")
          return open.map { Set($0) } == ["0", "1", "2", "3"]
        }
        let environment = try Data(contentsOf: URL(fileURLWithPath: "/proc/\(pid)/environ"))
        let names = environment.split(separator: 0).map {
          String(decoding: $0.prefix { $0 != UInt8(ascii: "=") }, as: UTF8.self)
        }
        #expect(
          Set(names).isSubset(of: [
            "SWIFT_BACKTRACE", "MALLOC_ARENA_MAX", "OMP_NUM_THREADS", "LD_LIBRARY_PATH",
          ]))
        let limits = try String(contentsOfFile: "/proc/\(pid)/limits", encoding: .utf8)
        #expect(limits.contains(try Regex("Max core file size +1 +1 ")))
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

  @Test(.disabled(if: PoolSupport.isThreadSanitized, "a sanitizer's shadow memory has no bound"))
  func `a worker's memory is bound`() async throws {
    var configuration = PoolSupport.configuration()
    configuration.maximumWorkerMemory = 123 << 20
    try await PoolSupport.withPool(configuration) { pool in
      let pid = try #require(pool.pids.first)
      let limits = try String(contentsOfFile: "/proc/\(pid)/limits", encoding: .utf8)
      #expect(limits.contains(try Regex("Max data size +\(123 << 20) ")))
      #expect(limits.contains(try Regex("Max file size +\(512 << 20) ")))
    }
  }

  @Test func `after shutting down no worker, zombie or descriptor is left`() async throws {
    // Given: all descriptors that are opened once per process are open
    try await PoolSupport.withPool { _ = try await $0.process(PoolSupport.job()) }
    let before = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count
    var pids: Set<pid_t> = []
    // When
    for _ in 0..<3 {
      try await PoolSupport.withPool(PoolSupport.configuration(workers: 3)) { pool in
        for _ in 0..<5 { _ = try await pool.process(PoolSupport.job()) }
        pids.formUnion(pool.pids)
      }
    }
    // Then
    #expect(pids.allSatisfy { !PoolSupport.exists($0) })
    try await PoolSupport.eventually("as few descriptors as before") {
      let now = try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count
      return now ?? .max <= before
    }
  }

  @Test func `shutting down finishes what was admitted and refuses what comes`() async throws {
    var configuration = PoolSupport.configuration()
    let first = FirstWorker()
    configuration.willSend = { pid in if first.isFirst() { kill(pid, SIGSTOP) } }
    let pool = ImagerPool(configuration: configuration, log: .silent)
    try pool.start()
    let running = Task { try await pool.process(PoolSupport.job()) }
    try await PoolSupport.eventually("running") { pool.busyPID != nil }
    let waiting = Task { try await pool.process(PoolSupport.job()) }
    try await PoolSupport.eventually("waiting") { pool.figures.waiting == 1 }
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

  @Test func `what is not done when the time is up is given up`() async throws {
    var configuration = PoolSupport.configuration()
    configuration.willSend = { pid in kill(pid, SIGSTOP) }
    let pool = ImagerPool(configuration: configuration, log: .silent)
    try pool.start()
    let running = Task { try await pool.process(PoolSupport.job()) }
    try await PoolSupport.eventually("running") { pool.busyPID != nil }
    let waiting = Task { try await pool.process(PoolSupport.job()) }
    try await PoolSupport.eventually("waiting") { pool.figures.waiting == 1 }
    let worker = try #require(pool.busyPID)
    await pool.shutDown(within: .milliseconds(50))
    await #expect(throws: ImageError.draining) { try await running.value }
    await #expect(throws: ImageError.draining) { try await waiting.value }
    #expect(!PoolSupport.exists(worker))
  }

  @Test func `a worker ends by itself when the server's end of the connection closes`() throws {
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

  @Test func `a pool that is dropped ends its workers`() async throws {
    var pool: ImagerPool? = ImagerPool(
      configuration: PoolSupport.configuration(workers: 2), log: .silent)
    try pool?.start()
    try await PoolSupport.eventually("two workers") { pool?.pids.count == 2 }
    let pids = pool?.pids ?? []
    pool = nil
    try await PoolSupport.eventually("no workers") { !pids.contains(where: PoolSupport.exists) }
  }

  private func withTimeout<Value: Sendable>(
    _ duration: Duration, _ body: @escaping @Sendable () async throws -> Value
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
