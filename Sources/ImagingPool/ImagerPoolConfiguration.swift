// ImagerPoolConfiguration: the number of imaging workers and their limits.

import Glibc
import ImagingWire

/// The settings of the imaging workers.
public struct ImagerPoolConfiguration: Sendable {
  /// Path of the program `pictor-imager`. It must contain a `/`, because `PATH` is not searched.
  public var executable: String
  /// Number of workers, at least 1. The default is one per core.
  public var workers: Int
  /// Maximum number of jobs in the queue, at least 0.
  public var queueLimit = 1_024
  /// Deadline of a job. After it, the worker is killed.
  public var jobDeadline = Duration.seconds(20)
  /// Maximum processor time of a job, summed over the worker's threads. After it, the worker is
  /// killed.
  public var processorTime = Duration.seconds(10)
  /// Maximum time from the start of a worker until it is ready.
  public var startDeadline = Duration.seconds(10)
  /// How long a worker may continue a cancelled job. Starting another worker costs more than most
  /// jobs, mainly for linking libvips.
  public var cancelGrace = Duration.milliseconds(250)
  /// Number of jobs after which a worker is replaced, at least 1.
  public var maximumJobsPerWorker = 10_000
  /// Resident memory in bytes above which a worker is replaced after a job.
  public var retireAboveResidentBytes = 256 << 20
  /// Maximum private memory of a worker in bytes (RLIMIT_DATA). `nil` means no limit. GLib aborts
  /// if an allocation fails, so a job that needs more fails with `outOfMemory`.
  public var maximumWorkerMemory: Int? = 2 << 30
  /// Maximum size of a result in bytes (RLIMIT_FSIZE). `nil` means no limit. Results do not count
  /// as private memory.
  public var maximumResultBytes: Int? = 512 << 20
  /// Added to the workers' niceness, 0–19. It divides the cores between hits and misses when both
  /// keep all of them busy (docs/performance.md).
  public var niceness = 5
  /// The limits for decoding.
  public var limits = ImagingLimits()
  /// Called with a worker's process id just before a job is sent to it. For tests, which stop or
  /// kill it there.
  package var willSend: (@Sendable (pid_t) -> Void)?
  /// Called with a worker's process id just before its upkeep after a job. For tests.
  package var willTidy: (@Sendable (pid_t) -> Void)?

  /// Creates the default settings for a program at this path.
  public init(executable: String) {
    self.executable = executable
    workers = max(sysconf(CInt(_SC_NPROCESSORS_ONLN)), 1)
  }
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
