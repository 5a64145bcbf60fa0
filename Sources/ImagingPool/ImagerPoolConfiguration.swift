// ImagerPoolConfiguration: the number of imaging workers and their limits.

import Core
import Glibc

/// The settings of the imaging workers, with limits that operators cannot set.
public struct ImagerPoolConfiguration: PartConfiguration {
  /// The keys `imaging.…`.
  public var settings: ImagingSettings
  /// Path of the program `pictor-imager`. It must contain a `/`, because `PATH` is not searched.
  public var executable: String
  /// Number of workers, at least 1.
  public var workers: Int
  /// Maximum time from the start of a worker until it is ready.
  public var startDeadline = Duration.seconds(10)
  /// How long a worker may continue a cancelled job. Starting another one costs about 30 ms of
  /// processor time, more than most jobs, mainly for linking libvips.
  public var cancelGrace = Duration.milliseconds(250)
  /// The processor time from which on a job counts as expensive although its estimate did not say
  /// so. Twice the bound of the estimate (`JobCost`), because estimates are rough.
  package var quickTime = Duration.seconds(2)
  /// Number of jobs with a risky format (`SourceHead`) after which a worker is replaced. The next
  /// one starts meanwhile, so that no job waits.
  var maximumRiskyJobs = 20
  /// Resident memory in bytes above which a worker is replaced after a job.
  public var retireAboveResidentBytes: Int
  /// Maximum private memory of a worker in bytes (RLIMIT_DATA). `nil` means no limit. GLib aborts
  /// if an allocation fails, so a job that needs more fails with `outOfMemory`.
  public var maximumWorkerMemory: Int?
  /// The estimated memory of all expensive jobs together, in bytes. One of them may have more, up
  /// to `maximumWorkerMemory`.
  public var expensiveJobMemory: Int
  /// What a job may take beyond the memory that it was admitted with, in bytes: the stacks of six
  /// threads. Each counts 8 MiB against the limit and takes a few KiB.
  package var memorySlack = 48 << 20
  /// Maximum size of a result in bytes (RLIMIT_FSIZE). `nil` means no limit. A result is a memory
  /// file, which does not count as private memory.
  public var maximumResultBytes: Int?
  /// The limits for decoding.
  public var limits: ImagingLimits
  /// Called with a worker's process id just before a job is sent to it. For tests, which stop or
  /// kill it there.
  package var willSend: (@Sendable (pid_t) -> Void)?
  /// Called with a worker's process id just before its upkeep after a job. For tests.
  package var willTidy: (@Sendable (pid_t) -> Void)?

  /// Creates the configuration of a pool; the plan decides what `settings` leave open.
  ///
  /// - Parameters:
  ///   - executable: the path of the program.
  ///   - settings: the keys; by default all have their defaults.
  ///   - plan: the available memory and cores; by default all cores and no limit of memory.
  ///   - parts: the bytes that the other parts of the server may hold together. Of what they leave,
  ///     expensive jobs share half, and each worker has a part of the other half for any other job.
  public init(
    executable: String, _ settings: ImagingSettings = ImagingSettings(),
    plan: MemoryPlan = .unlimited(cores: Cores.usable),
    parts: Int = 0
  ) {
    self.settings = settings
    self.executable = executable
    workers = settings.workers > 0 ? settings.workers : plan.workers
    maximumWorkerMemory = settings.workerMemory ?? plan.workerMemory
    retireAboveResidentBytes = plan.retireAbove
    limits = ImagingLimits(settings)
    maximumResultBytes = min(512 << 20, Self.resultBytes(ofMemory: maximumWorkerMemory ?? .max))
    limits.maximumBytes = maximumWorkerMemory ?? .max
    let jobMemory = plan.jobs(beside: parts, workers: workers)
    let quickBytes = jobMemory / 2 / workers
    // Where each worker may take all that it can have, estimates decide nothing.
    let isPlenty = quickBytes >= limits.maximumBytes
    expensiveJobMemory = isPlenty ? .max : jobMemory / 2
    limits.maximumQuickBytes = isPlenty ? .max : quickBytes
  }

  /// Returns the most that a result may have of the memory that its job was admitted with, in
  /// bytes: half. A worker writes it when the encoded bytes are all that is left of the job, and
  /// has both for a moment.
  static func resultBytes(ofMemory bytes: Int) -> Int { bytes / 2 }
}

/// The reason why no worker can start.
public struct ImagerStartError: Error, Hashable, Sendable, CustomStringConvertible {
  /// Path of the program.
  public let executable: String
  /// The reason.
  public let reason: String

  /// The error as one line for the operator.
  public var description: String { "cannot start the worker \(executable): \(reason)" }
}
