// ImagingSettings: the keys `imaging.…`: imaging workers, limits for decoding, and encoders.

/// The settings of imaging, `imaging.…`.
public struct ImagingSettings: Hashable, Sendable {
  /// Number of imaging workers, 0–256; 0 is one per core, as far as memory allows
  /// (`MemoryPlan.workers`).
  public var workers = 0
  /// Deadline of a job, 100 ms to 1 h. After it, the worker is killed. Shorter than the time limit
  /// for a response, so that the response can tell the reason.
  public var jobDeadline = Duration.seconds(20)
  /// Maximum processor time of a job, summed over the worker's threads, 100 ms to 1 h; an SVG has
  /// half of it. After it, the worker is killed.
  public var processorTime = Duration.seconds(10)
  /// Maximum number of jobs in the queue.
  public var queueLimit = 1_024
  /// Number of jobs after which a worker is replaced, at least 1.
  public var maximumJobsPerWorker = 10_000
  /// Maximum private memory of a worker in bytes, at least 64 MiB. `nil` depends on the available
  /// memory (`MemoryPlan.workerMemory`).
  public var workerMemory: Int?
  /// Whether workers have to be sealed. By default a kernel without a layer costs the layer and not
  /// the service; the log and `/stats` tell.
  public var sandbox = SandboxMode.ifPossible
  /// Added to the workers' niceness, 0–19. It divides the cores between hits and misses when both
  /// keep all of them busy (docs/performance.md).
  public var niceness = 2
  /// Formats that may be decoded. Other formats fail with `unsupported_format`.
  public var formats = ImageFormat.inputs
  /// Formats of `ImageFormat.negotiable` for requests without a format, in order of preference, if
  /// `Accept` names them. If empty, `Accept` is ignored.
  public var autoFormats: [ImageFormat] = [.avif, .webp]
  /// Maximum pixels of a source, all frames together, according to its header; 1 to 10^10.
  public var maximumPixels = 150_000_000
  /// Maximum pixels of a result, 1 to 10^9; clients can ask for no higher limit.
  public var maximumResultPixels = 25_000_000
  /// Maximum frames of a source, 1 to 100,000.
  public var maximumFrames = 1_000
  /// The mildest damage for which a source is refused.
  public var failOn = FailOn.warning
  /// Quality of lossy results for requests that name none, 1–100 each.
  public var qualities = FormatQualities()
  /// How much lower `qualities` are for clients that send `Save-Data: on`, 0–99; 0: not lower.
  public var saveDataReduction = 0
  /// Whether a PNG of a source with a palette has a palette, too.
  public var keepsPalettes = true
  /// The efforts of the encoders.
  public var efforts = EncoderEfforts()
  /// Whether a request without a cached AVIF is answered in a faster format first.
  public var defersAVIF = true
  /// After how many hits in memory a variant is recompressed, once, while workers are idle;
  /// 0–1,000,000; 0: never.
  public var recompressAfter = 20

  /// Creates the default settings.
  public init() {}
}
