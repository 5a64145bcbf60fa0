// ImagerPool: the image processor that decodes, transforms and encodes in worker processes.

import Core
import Synchronization

/// The server's side of imaging: one queue and one imaging worker per core. Untrusted input is
/// decoded only in the workers.
///
/// - If a worker crashes, another worker retries its job once (`JobDeaths`).
/// - A job over its limit of processor time fails with `tooCostly`.
/// - A job over its deadline fails with `imagingTimeout` and is not retried. The cause may be the
///   image or a busy machine, so the source is not negatively cached.
public final class ImagerPool: ImageProcessor {
  private let configuration: ImagerPoolConfiguration
  private let storage: VariantStorage
  private let log: Log
  /// The event loops; `nil` if workers do not make room for them.
  private let loops = Lock<EventLoops?>(nil)
  /// Set once, by `start`.
  let core = AtomicLazyReference<PoolCore>()

  /// Creates a pool. Call `start` before `process`.
  ///
  /// - Parameter storage: where results are until they are sent.
  public init(
    configuration: ImagerPoolConfiguration, storage: VariantStorage = .unlimited, log: Log
  ) {
    self.storage = storage
    self.configuration = configuration
    self.log = log
  }

  /// Lets workers leave cores to the event loops while these are busy, and the loops keep to them.
  /// Call before `start`.
  ///
  /// - Parameters:
  ///   - loopTime: returns the processor time of all event loops together.
  ///   - confineLoops: lets all event loops run on these cores only.
  public func reserveCores(
    loopTime: @escaping @Sendable () -> Duration,
    confineLoops: @escaping @Sendable (Cores) throws(SystemError) -> Void
  ) {
    loops.withLock { $0 = EventLoops(time: loopTime, confine: confineLoops) }
  }

  /// Applies other limits of decoding, times and efforts to jobs that begin from now on. The number
  /// of workers and their memory stay.
  public func apply(_ wanted: ImagerPoolConfiguration) {
    guard let core = core.load() else { return }
    core.current.withLock { running in
      let memory = (running.limits.maximumBytes, running.limits.maximumQuickBytes)
      running.settings = wanted.settings
      running.limits = wanted.limits
      (running.limits.maximumBytes, running.limits.maximumQuickBytes) = memory
    }
    core.board.withLock { $0.limit = max(wanted.queueLimit, 0) }
  }

  /// Stops the workers at once if `shutDown` was not called.
  deinit { core.load()?.stop(at: .now) }

  /// Starts the workers and waits until the first one is ready, for at most `startDeadline` plus
  /// one second.
  ///
  /// - Throws: `ImagerStartError` with the program's path if no worker can start. All workers are
  ///   then stopped.
  public func start() throws(ImagerStartError) {
    let created: PoolCore
    do throws(SystemError) {
      created = try PoolCore(configuration, storage: storage, reserve: reserve(), log: log)
    } catch {
      throw ImagerStartError(executable: configuration.executable, reason: "\(error)")
    }
    guard core.storeIfNil(created) === created else {
      throw ImagerStartError(executable: configuration.executable, reason: "already started")
    }
    try created.start()
  }

  private func reserve() -> CoreReserve? {
    guard let loops = loops.withLock({ $0 }) else { return nil }
    do throws(SystemError) {
      return try CoreReserve(
        of: { () throws(SystemError) in try Cores.allowed() }, for: loops)
    } catch {
      log.warning("workers leave no cores to event loops", fields: ["reason": .string("\(error)")])
      return nil
    }
  }

  /// Makes a variant. Cancelling the calling task cancels the job at once. A worker that has
  /// started the job may finish it within `cancelGrace`.
  ///
  /// - Throws:
  ///   - the pipeline's error if the image is faulty
  ///   - `tooCostly` or `imagingTimeout` if a limit is exceeded
  ///   - `ofVariant` with `undecodable` if the job crashes workers
  ///   - `outOfMemory` if its workers are lost for lack of memory
  ///   - `overloaded` if the queue is full
  ///   - `draining` after `shutDown`
  ///   - `cancelled`
  public func process(_ job: ImageJob) async throws(ImageError) -> ProcessedImage {
    guard let core = core.load() else { throw .internal(detail: "imaging has not been started") }
    // A quick job could end before it is cancelled.
    guard !Task.isCancelled else {
      core.counters.cancelled.add()
      throw .cancelled
    }
    let id = core.nextID()
    let result = await withTaskCancellationHandler {
      await withCheckedContinuation { caller in
        core.submit(
          id,
          job: PendingJob(
            job: job, submittedAt: .now, account: ImagingAccounts.current, caller: caller))
        // A cancellation before `submit` had no effect, so repeat it.
        if Task.isCancelled { core.cancel(id) }
      }
    } onCancel: {
      core.cancel(id)
    }
    core.synchronize()
    return try result.get()
  }

  /// Refuses new jobs, waits for the others for at most `grace`, and stops all workers. Unfinished
  /// jobs fail with `draining`. No worker is left when this returns.
  public func shutDown(within grace: Duration) async {
    guard let core = core.load() else { return }
    core.stop(at: .now + grace)
    await core.ended()
  }

  /// The figures for `/stats`.
  public var figures: Figures {
    let core = core.load()
    let counters = core?.counters ?? PoolCounters()
    let (waiting, running, slots) =
      core?.read { ($0.waitingCount, $0.runningCount, $0.slots) } ?? (0, 0, [])
    var figures = Figures(of: counters)
    figures.add(
      nil, counters.failed.sum, "pictor_imaging_jobs_total", "Failed jobs.", ["result": "failed"])
    figures.add("waiting", waiting, "pictor_imaging_jobs_waiting", "Queued imaging jobs.")
    figures.add("running", running, "pictor_imaging_jobs_running", "Running imaging jobs.")
    figures.add(
      "limit", max(core?.configuration.queueLimit ?? 0, 0), "pictor_imaging_jobs_waiting_limit",
      "The most imaging jobs that may be queued.")
    figures.add(
      "workers", slots.count { $0.pid != nil }, "pictor_imaging_workers", "Live imaging workers.")
    figures.add(
      "resident_bytes", slots.reduce(0) { $0 + $1.residentBytes },
      "pictor_imaging_resident_memory_bytes", "Resident memory of all imaging workers.")
    figures.add(
      "reserved_cores", core?.reserve?.count ?? 0, "pictor_imaging_reserved_cores",
      "Cores that workers leave to busy event loops.")
    if let sandbox = core?.sandbox {
      var seal = Figures()
      seal.add(
        "landlock", sandbox.landlock, "pictor_imaging_landlock_version",
        "The version of Landlock that seals the imaging workers; 0: none.")
      seal.add(
        "seccomp", sandbox.seccomp, "pictor_imaging_seccomp",
        "Whether seccomp seals the imaging workers: 1, else 0.")
      figures.add("sandbox", seal)
    }
    return figures
  }

  /// The figures of the memory that expensive jobs are estimated to need.
  public var memoryFigures: Figures {
    let limit = configuration.expensiveJobMemory
    let (bytes, peak, refused) =
      core.load()?.read { ($0.bytesOfLong, $0.peakOfLong, $0.waitsForMemory) } ?? (0, 0, 0)
    return Figures(
      budget: "jobs", bytes: bytes, peak: peak, limit: limit == .max ? 0 : limit, refused: refused)
  }
}

/// Counters of a pool.
final class PoolCounters: Sendable {
  let succeeded = Counter(
    "succeeded", "pictor_imaging_jobs_total", "Ended imaging jobs, by result.",
    ["result": "succeeded"])
  let cancelled = Counter(
    "cancelled", "pictor_imaging_jobs_total", "Jobs without a participant left.",
    ["result": "cancelled"])
  let failed = CodeCounts(
    "failed", "pictor_imaging_failures_total", by: "code", "Failed imaging jobs, by error code.")
  let lost = Counter(
    "workers_lost", "pictor_imaging_workers_lost_total",
    "Imaging workers that crashed, missed a deadline or broke the protocol.")
  let retired = Counter(
    "workers_retired", "pictor_imaging_workers_retired_total",
    "Imaging workers replaced on purpose.")
  /// Jobs that needed more memory than estimated.
  let underestimated = Counter(
    "underestimated", "pictor_imaging_jobs_underestimated_total",
    "Jobs repeated with all the memory of a worker.")
  let faceSearches = Counter(
    "face_searches", "pictor_imaging_face_searches_total",
    "Sources that were searched for faces; the faces are kept for other variants.")
  let latency = LatencyHistogram(
    "latency", "pictor_imaging_job_duration_seconds", "Time of imaging jobs, start to result.")
}
