// ImagingAccountTests: which time of real workers is charged to the client of a job.

import Core
import Glibc
import ImagingPool
import TestSupport
import Testing

@Suite(.onOwnThreads) struct ImagingAccountTests {
  /// Adds up what is charged.
  private final class Bill: ImagingAccount {
    let client = LoadClient.unlimited
    private let total = Lock(Duration.zero)
    var time: Duration { total.withLock { $0 } }
    func charge(_ time: Duration) { total.withLock { $0 += time } }
  }

  /// Runs a job for a client. Returns its bill and whether the job succeeded.
  private func bill(
    for job: ImageJob, in pool: ImagerPool
  ) async -> (time: Duration, succeeded: Bool) {
    let bill = Bill()
    let succeeded = await ImagingAccounts.$current.withValue(bill) {
      (try? await pool.process(job)) != nil
    }
    return (bill.time, succeeded)
  }

  @Test func `images, descriptions and failed jobs are charged by the time of the worker`()
    async throws
  {
    var info = Transform()
    info.product = .info(nil)
    let damaged = ImageJob(
      file: try PoolSupport.file(of: Array(PoolSupport.png(width: 64, height: 48).prefix(200))),
      transform: Transform(), density: 1)
    let jobs = [
      (try PoolSupport.job(), true), (try PoolSupport.job(to: info), true), (damaged, false),
    ]
    try await PoolSupport.withPool { pool in
      for (job, succeeds) in jobs {
        let start = ContinuousClock.now
        let result = await bill(for: job, in: pool)
        #expect(result.succeeded == succeeds)
        #expect(result.time > .zero && result.time <= start.duration(to: .now))
      }
    }
  }

  @Test func `a job that a worker does not finish is charged until its deadline`() async throws {
    var configuration = PoolSupport.configuration()
    configuration.jobDeadline = .milliseconds(100)
    configuration.willSend = { kill($0, SIGSTOP) }
    try await PoolSupport.withPool(configuration) { pool in
      let result = await bill(for: try PoolSupport.job(), in: pool)
      #expect(!result.succeeded && result.time >= .milliseconds(100))
    }
  }
}
