// ImagerPool: decoding, transforming and encoding, done by worker processes.

import ImagingWire
import Model
import Platform
import Synchronization
import Telemetry

/// The server's side of imaging: one queue, and one worker process per core that takes jobs from it. Strangers' bytes
/// are decoded nowhere else.
///
/// A job whose worker dies is tried once more with a fresh one (`JobDeaths`). One that takes more processor time than it may
/// is `tooCostly`. One that takes longer than its deadline by the clock is `deadlineExceeded` and not tried again: that may be
/// the image's fault or a busy machine's, so it says nothing lasting about the source.
public final class ImagerPool: ImageProcessor {
  private let configuration: ImagerPoolConfiguration
  private let log: Log
  /// Set by `start`, never replaced.
  private let core = AtomicLazyReference<PoolCore>()

  /// A pool that has yet to be started.
  public init(configuration: ImagerPoolConfiguration, log: Log) {
    (self.configuration, self.log) = (configuration, log)
  }

  /// A pool that nobody shut down ends its workers at once.
  deinit { core.load()?.stop(at: .now) }

  /// Starts the workers and waits until the first one takes jobs; at most `startDeadline` and a second.
  ///
  /// - Throws: `ImagerStartError`, naming the program, when it cannot be started; nothing is left behind then.
  public func start() throws(ImagerStartError) {
    let created: PoolCore
    do throws(SystemError) {
      created = try PoolCore(configuration, log: log)
    } catch {
      throw ImagerStartError(executable: configuration.executable, reason: "\(error)")
    }
    guard core.storeIfNil(created) === created else {
      throw ImagerStartError(executable: configuration.executable, reason: "already started")
    }
    try created.start()
  }

  /// Makes a variant. Cancelling the calling task gives the job up at once; one that a worker has begun is finished
  /// there if that takes no longer than `cancelGrace`.
  ///
  /// - Throws: What the pipeline found wrong with the image; `tooCostly`; `deadlineExceeded`; `ofVariant` with
  ///   `undecodable` for one that crashes workers; `outOfMemory` for one whose workers are lost to memory; `overloaded`
  ///   when the queue is full; `draining` once the pool is shut down; `cancelled`.
  public func process(_ job: ImageJob) async throws(ImageError) -> ProcessedImage {
    guard let core = core.load() else { throw .internal(detail: "imaging has not been started") }
    let id = core.nextID()
    let result = await withTaskCancellationHandler {
      await withCheckedContinuation { caller in
        core.submit(id, PendingJob(job: job, submittedAt: .now, caller: caller))
        // A cancellation that came before the job was there found nothing to cancel.
        if Task.isCancelled { core.cancel(id) }
      }
    } onCancel: {
      core.cancel(id)
    }
    return try result.get()
  }

  /// Admits no more jobs, waits for those there are, at most for `grace`, and ends all workers. What is not done by
  /// then is answered with `draining`. When this returns no worker is left.
  public func shutDown(within grace: Duration) async {
    guard let core = core.load() else { return }
    core.stop(at: .now + grace)
    await core.ended()
  }

  /// What `/stats` shows.
  public var figures: ImagingFigures {
    var figures = ImagingFigures()
    figures.limit = max(configuration.queueLimit, 0)
    guard let core = core.load() else { return figures }
    let (waiting, running, slots) = core.read { ($0.waitingCount, $0.runningCount, $0.slots) }
    figures.waiting = waiting
    figures.running = running
    figures.workers = slots.filter { $0.pid != nil }.count
    figures.residentBytes = slots.reduce(0) { $0 + $1.residentBytes }
    figures.succeeded = core.succeeded.value
    figures.failed = core.failed.values
    figures.cancelled = core.cancelled.value
    figures.workersLost = core.lost.value
    figures.workersRetired = core.retired.value
    figures.latency = core.latency.figures
    return figures
  }

  /// Workers that wait for a job; for tests.
  package var idleWorkers: Int { core.load()?.read { $0.idleCount } ?? 0 }

  /// The workers that take jobs, and of those the ones that have one; for tests.
  package var workerPIDs: [(pid: Int32, isBusy: Bool)] {
    core.load()?.read { $0.slots.compactMap { slot in slot.pid.map { ($0, slot.isBusy) } } } ?? []
  }
}
