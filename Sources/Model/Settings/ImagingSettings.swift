// ImagingSettings: the keys `imaging.…`: imaging workers, limits for decoding, and encoders.

/// The settings of imaging, `imaging.…`.
public struct ImagingSettings: Hashable, Sendable {
  /// Imaging workers; 0: one per core, as far as memory allows (`MemoryPlan.workers`).
  public var workers = 0
  /// Deadline of a job. Shorter than the time limit for a response, so that it can tell the reason.
  public var jobDeadline = Duration.seconds(20)
  /// Maximum processor time of a job, all threads of its worker together; an SVG has half of it.
  public var processorTime = Duration.seconds(10)
  /// Maximum jobs in the queue.
  public var queueLimit = 1_024
  /// Number of jobs after which a worker is replaced, at least 1.
  public var maximumJobsPerWorker = 10_000
  /// Maximum private memory of a worker in bytes; `nil`: `MemoryPlan.workerMemory`.
  public var workerMemory: Int?
  /// Whether workers have to be sealed. By default a kernel without a layer costs the layer and not
  /// the service; the log and `/stats` tell.
  public var sandbox = SandboxMode.ifPossible
  /// Added to the workers' niceness, 0–19. It divides the cores between hits and misses when both
  /// keep all of them busy (docs/performance.md).
  public var niceness = 2
  /// Formats that may be decoded.
  public var formats = ImageFormat.inputs
  /// Formats of `ImageFormat.negotiable` that `format=auto` offers, the preferred first.
  public var autoFormats: [ImageFormat] = [.avif, .webp]
  /// Whether requests without `format` keep the source's, as with `format=source`.
  public var keepsFormat = false
  /// Maximum pixels of a source, all frames together, according to its header.
  public var maximumPixels = 150_000_000
  /// Maximum pixels of a result; clients can ask for no higher limit.
  public var maximumResultPixels = 25_000_000
  /// Maximum frames of a source.
  public var maximumFrames = 1_000
  /// The mildest damage for which a source is refused.
  public var failOn = FailOn.warning
  /// Quality of lossy results for requests that name none.
  public var qualities = FormatQualities()
  /// How much lower `qualities` are for clients that send `Save-Data: on`.
  public var saveDataReduction = 0
  /// Whether a PNG of a source with a palette has a palette, too.
  public var keepsPalettes = true
  /// The efforts of the encoders.
  public var efforts = EncoderEfforts()
  /// Whether a request without a cached AVIF is answered in a faster format first.
  public var defersAVIF = true
  /// Hits in memory after which idle workers recompress a variant, once; 0: never.
  public var recompressAfter = 20

  /// Creates the default settings.
  public init() {}
}

/// The mildest damage that rejects a source, in libvips's terms. Each level also rejects what the
/// levels below it list.
public enum FailOn: String, RankedCases, Sendable {
  /// Accepts all damage that a decoder tolerates.
  case none
  /// Rejects truncated sources.
  case truncated
  /// Rejects sources with an invalid structure.
  case error
  /// Rejects sources with any warning about lost or made-up pixels.
  case warning
}

/// Whether workers are sealed off before they read untrusted input (docs/security.md).
public enum SandboxMode: String, CaseIterable, Sendable {
  /// Every layer, or the server does not start.
  case required
  /// Every layer that the kernel has. The log and `/stats` tell which.
  case ifPossible = "if_possible"
  /// None, for debuggers and profilers.
  case off
}

/// The layers that seal a worker. A worker reports them before its first job.
public struct SandboxReport: Codable, Hashable, Sendable {
  /// The version of Landlock's interface; 0 if Landlock does not restrict the worker.
  public var landlock: Int
  /// Whether seccomp filters the worker's system calls.
  public var seccomp: Bool

  /// Creates a report, by default of an open worker.
  public init(landlock: Int = 0, seccomp: Bool = false) {
    (self.landlock, self.seccomp) = (landlock, seccomp)
  }

  /// Whether every layer is there.
  public var isWhole: Bool { landlock > 0 && seccomp }
}
