// WorkerWatchTests: a worker that was taken over and uses more than its limits count.

import Core
import ImagingPool
import TestSupport
import Testing

/// Serialized, because the tests start processes.
@Suite(.onOwnThreads, .serialized, .timeLimit(.minutes(1))) struct WorkerWatchTests {
  @Test(
    .disabled(if: TestBuild.isThreadSanitized, "a sanitizer's shadow memory has no bound"),
    arguments: ["work", "share", "shareInJob"])
  func `a worker that works without a job, or takes shared memory beyond its limit, is ended`(
    greed: String
  ) async throws {
    var configuration = PoolSupport.configuration()
    configuration.executable = TestBuild.programFolder + "/attacker"
    configuration.settings.sandbox = .off
    configuration.maximumWorkerMemory = 128 << 20
    configuration.maximumResultBytes = nil
    let job = ImageJob(
      file: try PoolSupport.file(of: Array(greed.utf8)), transform: Transform(), density: 1)
    try await PoolSupport.withPool(configuration) { pool in
      try await eventually("a worker is ready") { pool.idleWorkers == 1 }
      let pid = try #require(pool.workerPIDs.first?.pid)
      await #expect(throws: ImageError.self) { try await pool.process(job) }
      try await eventually("it is lost") { pool.figures.workersLost > 0 }
      try await eventually("another one is ready") {
        pool.workerPIDs.first.map { $0.pid != pid } ?? false
      }
    }
  }
}
