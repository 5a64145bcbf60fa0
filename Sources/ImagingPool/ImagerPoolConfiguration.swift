// ImagerPoolConfiguration: how many workers there are, and what each is allowed.

import Glibc
import ImagingWire

/// What an operator may say about the worker processes.
public struct ImagerPoolConfiguration: Sendable {
  /// Path of the program `pictor-imager`, with at least one `/`: it is not looked up in `PATH`.
  public var executable: String
  /// How many workers, at least 1; one per core by default.
  public var workers: Int
  /// How many jobs may wait for a worker, at least 0.
  public var queueLimit = 1_024
  /// How long a worker may take for one job before it is killed.
  public var jobDeadline = Duration.seconds(20)
  /// How much processor time a worker may take for one job before it is killed, all of its threads together.
  public var processorTime = Duration.seconds(10)
  /// How long a worker may take to start.
  public var startDeadline = Duration.seconds(10)
  /// How long a worker may go on with a job that nobody wants any more. Starting another takes about 20 ms of processor
  /// (nearly all of it to link libvips), more than most jobs, so what is nearly done is better finished.
  public var cancelGrace = Duration.milliseconds(250)
  /// After how many jobs a worker is replaced; at least 1.
  public var maximumJobsPerWorker = 10_000
  /// A worker that holds more than this after a job, in bytes, is replaced.
  public var retireAboveResidentBytes = 256 << 20
  /// Most private memory a worker may have, in bytes (RLIMIT_DATA); `nil`: no bound. GLib ends a process whose
  /// allocation fails, so a job that needs more is `outOfMemory`.
  public var maximumWorkerMemory: Int? = 2 << 30
  /// Most bytes a result may have (RLIMIT_FSIZE); `nil`: no bound. Results are not part of a worker's memory.
  public var maximumResultBytes: Int? = 512 << 20
  /// Added to the workers' niceness, 0–19: what hits keep of their rate beside misses that keep all cores busy, and
  /// those of theirs (docs/performance.md).
  public var niceness = 5
  /// Bounds on what is decoded.
  public var limits = ImagingLimits()
  /// Told of a worker just before a job is sent to it; for tests, which stop or kill it there.
  package var willSend: (@Sendable (pid_t) -> Void)?
  /// Told of a worker just before it is looked after, behind a job; for tests.
  package var willTidy: (@Sendable (pid_t) -> Void)?

  /// The defaults, for a program at this path.
  public init(executable: String) {
    self.executable = executable
    workers = max(sysconf(CInt(_SC_NPROCESSORS_ONLN)), 1)
  }
}

/// Why there are no workers.
public struct ImagerStartError: Error, Hashable, Sendable, CustomStringConvertible {
  /// Path of the program.
  public let executable: String
  /// What went wrong.
  public let reason: String

  /// One line for the operator.
  public var description: String { "cannot start the worker \(executable): \(reason)" }
}
