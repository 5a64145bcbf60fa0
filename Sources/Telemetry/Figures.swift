// Figures: the content of `/stats`. Each target fills in its own part.

import Model

/// A summary of durations: count, sum, and quantiles in milliseconds.
public struct LatencyFigures: Codable, Hashable, Sendable {
  /// The number of durations.
  public var count: Int
  /// The sum of all durations, in seconds.
  public var sumSeconds: Double
  /// The median in milliseconds.
  public var p50: Double
  /// The 95th percentile in milliseconds.
  public var p95: Double
  /// The 99th percentile in milliseconds.
  public var p99: Double
  /// The number of durations below each of `bounds`, for `/metrics`; empty in a decoded summary.
  public var buckets: [Int] = []

  /// The upper bounds of `buckets` in seconds: 8 µs, 16 µs and so on to 33.6 s. Powers of two, where a histogram has
  /// its own bounds, so no count is an estimate.
  public static let bounds = boundExponents.map { Double(1 << $0) / 1e6 }
  /// The bounds as powers of two of a microsecond.
  static let boundExponents = 3...25

  /// Creates a summary.
  public init(
    count: Int, sumSeconds: Double, p50: Double, p95: Double, p99: Double, buckets: [Int] = []
  ) {
    self.buckets = buckets
    self.count = count
    self.sumSeconds = sumSeconds
    self.p50 = p50
    self.p95 = p95
    self.p99 = p99
  }

  enum CodingKeys: String, CodingKey {
    case count
    case sumSeconds = "sum_seconds"
    case p50 = "p50_ms"
    case p95 = "p95_ms"
    case p99 = "p99_ms"
  }
}

/// Figures of downloads from origins.
public struct DownloadFigures: Codable, Hashable, Sendable {
  /// Downloads that succeeded.
  public var succeeded = 0
  /// Downloads that failed, by error code.
  public var failed: [String: Int] = [:]
  /// Downloads cancelled because no participant was left.
  public var cancelled = 0
  /// Running downloads.
  public var running = 0
  /// Queued downloads.
  public var waiting = 0
  /// Running downloads that wait for memory for their body.
  public var waitingForMemory = 0
  /// Running downloads whose host has not responded for long. They do not count against `limit`.
  public var silent = 0
  /// Running downloads whose host sends too slowly. They do not count against `limit`.
  public var slow = 0
  /// Stalled downloads that ended so that others could start.
  public var givenUp = 0
  /// The maximum number of running downloads, without silent and slow ones.
  public var limit = 0
  /// The maximum number of running downloads from one host.
  public var limitPerHost = 0
  /// The share of running downloads of one client.
  public var limitPerClient = 0
  /// Running downloads above the shares of their clients. Those of other clients start as if these did not run.
  public var aboveShare = 0
  /// Body bytes received.
  public var bytes = 0
  /// Retries after failures.
  public var retries = 0
  /// Hosts whose circuit breaker is open or half-open.
  public var circuitsOpen = 0
  /// Whether an operator has paused the queue.
  public var paused = false
  /// Look-ups of names.
  public var names = NameFigures()
  /// Time from the start of a transfer to its end.
  public var latency: LatencyFigures?

  /// Creates figures of zero.
  public init() {}

  enum CodingKeys: String, CodingKey {
    case succeeded, failed, cancelled, running, waiting, silent, slow, limit, bytes, retries, paused
    case names, latency
    case givenUp = "given_up"
    case waitingForMemory = "waiting_for_memory"
    case circuitsOpen = "circuits_open"
    case limitPerHost = "limit_per_host"
    case limitPerClient = "limit_per_client"
    case aboveShare = "above_share"
  }
}

/// Figures of the names of origins and proxies.
public struct NameFigures: Codable, Hashable, Sendable {
  /// Names being looked up, each on a thread.
  public var running = 0
  /// Running look-ups that take longer than `download.connect_timeout`.
  public var stuck = 0
  /// Names that wait for a thread.
  public var waiting = 0
  /// The maximum number of threads.
  public var limit = 0
  /// Names that did not get a thread because too many waited.
  public var refused = 0
  /// Remembered names, existing or not.
  public var remembered = 0

  /// Creates figures of zero.
  public init() {}
}

/// Figures of the manager's flights.
public struct FlightFigures: Codable, Hashable, Sendable {
  /// Running source flights.
  public var sources = 0
  /// Running variant flights.
  public var variants = 0
  /// Requests that wait for flights.
  public var waiting = 0
  /// Flights started.
  public var started = 0
  /// Requests that joined a running flight.
  public var coalesced = 0
  /// Flights cancelled because their last participant left, or by an operator.
  public var cancelled = 0
  /// Entries of the negative cache.
  public var failedURLs = 0
  /// Sources served because the encoded image was larger.
  public var sourcesInstead = 0
  /// Variants derived from larger variants, because their source was not cached.
  public var derived = 0
  /// AVIFs encoded in the background.
  public var avifsLater = 0
  /// AVIFs queued or being encoded in the background.
  public var avifsWaiting = 0
  /// Background AVIFs that failed.
  public var avifsFailed = 0

  /// Creates figures of zero.
  public init() {}

  enum CodingKeys: String, CodingKey {
    case sources, variants, waiting, started, coalesced, cancelled, derived
    case failedURLs = "failed_urls"
    case sourcesInstead = "sources_instead"
    case avifsLater = "avifs_later"
    case avifsWaiting = "avifs_waiting"
    case avifsFailed = "avifs_failed"
  }
}

/// Figures of prefetching.
public struct PrefetchFigures: Codable, Hashable, Sendable {
  /// Running lists.
  public var lists = 0
  /// Waiting images.
  public var waiting = 0
  /// Running images.
  public var running = 0
  /// The maximum number of running images.
  public var limit = 0
  /// Images that were downloaded or rendered.
  public var finished = 0
  /// Images that were already cached and fresh.
  public var skipped = 0
  /// Images that failed.
  public var failed = 0

  /// Creates figures of zero.
  public init() {}
}

/// Figures of the imaging workers.
public struct ImagingFigures: Codable, Hashable, Sendable {
  /// Jobs that succeeded.
  public var succeeded = 0
  /// Jobs that failed, by error code.
  public var failed: [String: Int] = [:]
  /// Jobs cancelled because no participant was left.
  public var cancelled = 0
  /// Running jobs.
  public var running = 0
  /// Queued jobs.
  public var waiting = 0
  /// The maximum number of queued jobs.
  public var limit = 0
  /// Live imaging workers.
  public var workers = 0
  /// Imaging workers that crashed, were killed at a deadline, or violated the protocol.
  public var workersLost = 0
  /// Imaging workers that were replaced because of age.
  public var workersRetired = 0
  /// Jobs that needed more memory than estimated and were repeated with a worker's whole memory.
  public var underestimated = 0
  /// Cores that the workers leave to event loops now.
  public var reservedCores = 0
  /// The layers that seal the imaging workers, as the last one to start reports them; `nil` before the first.
  public var sandbox: SandboxReport?
  /// Resident memory of all imaging workers, in bytes.
  public var residentBytes = 0
  /// Time from the start of a job to its result.
  public var latency: LatencyFigures?

  /// Creates figures of zero.
  public init() {}

  enum CodingKeys: String, CodingKey {
    case succeeded, failed, cancelled, running, waiting, limit, workers, latency, sandbox
    case underestimated
    case reservedCores = "reserved_cores"
    case workersLost = "workers_lost"
    case workersRetired = "workers_retired"
    case residentBytes = "resident_bytes"
  }
}

/// Figures of the server process.
public struct ProcessFigures: Codable, Hashable, Sendable {
  /// Resident memory in bytes.
  public var residentBytes = 0
  /// Open file descriptors.
  public var descriptors = 0
  /// The limit for open file descriptors.
  public var descriptorLimit = 0
  /// Threads.
  public var threads = 0
  /// CPU time used, user and system, in seconds.
  public var cpuSeconds = 0.0

  /// Creates figures of zero.
  public init() {}

  enum CodingKeys: String, CodingKey {
    case descriptors, threads
    case residentBytes = "resident_bytes"
    case descriptorLimit = "descriptor_limit"
    case cpuSeconds = "cpu_seconds"
  }
}

/// The complete response of `/stats`.
public struct Stats: Codable, Hashable, Sendable {
  /// `serving` or `draining`.
  public var status: String
  /// The version of the program.
  public var version: String
  /// Seconds since the start.
  public var uptimeSeconds: Double
  /// Where the server listens: `127.0.0.1:8080`, `unix:/run/pictor.sock`.
  public var addresses: [String] = []
  /// Figures of the HTTP server.
  public var requests: RequestFigures
  /// Figures of the memory tier.
  public var memory: TierFigures
  /// Figures of the bytes that are held in memory and in files.
  public var budgets = BudgetsFigures()
  /// Figures of the disk tier.
  public var disk: TierFigures
  /// Figures of downloads from origins.
  public var downloads: DownloadFigures
  /// Figures of the manager's flights.
  public var flights: FlightFigures
  /// Figures of stale responses.
  public var freshness: FreshnessFigures
  /// Figures of recompression.
  public var recompression = RecompressionFigures()
  /// Figures of prefetching.
  public var prefetch: PrefetchFigures
  /// Figures of the imaging workers.
  public var imaging: ImagingFigures
  /// Figures of the server process.
  public var process: ProcessFigures
  /// Figures of the log.
  public var log: LogFigures
  /// Figures of the fleet; `nil` for a machine that is alone.
  public var fleet: FleetFigures?
  /// Figures of the export of spans; `nil` if no spans are exported.
  public var tracing: TracingFigures?

  /// Creates the statistics.
  public init(
    status: String, version: String, uptimeSeconds: Double, requests: RequestFigures,
    memory: TierFigures, disk: TierFigures, downloads: DownloadFigures, flights: FlightFigures,
    freshness: FreshnessFigures, prefetch: PrefetchFigures, imaging: ImagingFigures,
    process: ProcessFigures, log: LogFigures = LogFigures()
  ) {
    self.log = log
    self.status = status
    self.version = version
    self.uptimeSeconds = uptimeSeconds
    self.requests = requests
    self.memory = memory
    self.disk = disk
    self.downloads = downloads
    self.flights = flights
    self.freshness = freshness
    self.prefetch = prefetch
    self.imaging = imaging
    self.process = process
  }

  enum CodingKeys: String, CodingKey {
    case status, version, addresses, requests, memory, budgets, disk, downloads, flights, freshness,
      prefetch, recompression,
      imaging
    case process, log, tracing, fleet
    case uptimeSeconds = "uptime_seconds"
  }
}
