// Figures: the content of `/stats`. Each target fills in its own part.

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

  /// Creates a summary.
  public init(count: Int, sumSeconds: Double, p50: Double, p95: Double, p99: Double) {
    (self.count, self.sumSeconds) = (count, sumSeconds)
    (self.p50, self.p95, self.p99) = (p50, p95, p99)
  }

  enum CodingKeys: String, CodingKey {
    case count
    case sumSeconds = "sum_seconds"
    case p50 = "p50_ms"
    case p95 = "p95_ms"
    case p99 = "p99_ms"
  }
}

/// Figures of the HTTP server.
public struct RequestFigures: Codable, Hashable, Sendable {
  /// Requests answered.
  public var total = 0
  /// Requests in progress.
  public var active = 0
  /// The maximum number of requests that may wait at once.
  public var limit = 0
  /// Responses by status code.
  public var byStatus: [String: Int] = [:]
  /// `/image` responses by origin: `memory`, `disk`, `source`, `variant`, `origin`, `stale` (served
  /// instead of an error of the origin), `error`.
  public var byOrigin: [String: Int] = [:]
  /// `/image` responses from memory or disk ÷ all `/image` responses with an image.
  public var hitRatio = 0.0
  /// Body bytes sent.
  public var bytesSent = 0
  /// Clients that disconnected before their response.
  public var clientsGone = 0
  /// Open connections.
  public var connections = 0
  /// Time from the request head to the response, for memory hits.
  public var hitLatency: LatencyFigures?
  /// The same for all other image requests.
  public var missLatency: LatencyFigures?

  /// Creates figures of zero.
  public init() {}

  enum CodingKeys: String, CodingKey {
    case total, active, limit, connections
    case byStatus = "by_status"
    case byOrigin = "by_origin"
    case hitRatio = "hit_ratio"
    case bytesSent = "bytes_sent"
    case clientsGone = "clients_gone"
    case hitLatency = "hit_latency"
    case missLatency = "miss_latency"
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
  /// Running downloads whose host has not responded for long. They do not count against `limit`.
  public var silent = 0
  /// The maximum number of running downloads, without silent ones.
  public var limit = 0
  /// The maximum number of running downloads from one host.
  public var limitPerHost = 0
  /// Body bytes received.
  public var bytes = 0
  /// Retries after failures.
  public var retries = 0
  /// Hosts whose circuit breaker is open or half-open.
  public var circuitsOpen = 0
  /// Whether an operator has paused the queue.
  public var paused = false
  /// Time from the start of a transfer to its end.
  public var latency: LatencyFigures?

  /// Creates figures of zero.
  public init() {}

  enum CodingKeys: String, CodingKey {
    case succeeded, failed, cancelled, running, waiting, silent, limit, bytes, retries, paused
    case latency
    case circuitsOpen = "circuits_open"
    case limitPerHost = "limit_per_host"
  }
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
  /// Resident memory of all imaging workers, in bytes.
  public var residentBytes = 0
  /// Time from the start of a job to its result.
  public var latency: LatencyFigures?

  /// Creates figures of zero.
  public init() {}

  enum CodingKeys: String, CodingKey {
    case succeeded, failed, cancelled, running, waiting, limit, workers, latency
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
  /// Figures of the HTTP server.
  public var requests: RequestFigures
  /// Figures of the memory tier.
  public var memory: TierFigures
  /// Figures of the disk tier.
  public var disk: TierFigures
  /// Figures of downloads from origins.
  public var downloads: DownloadFigures
  /// Figures of the manager's flights.
  public var flights: FlightFigures
  /// Figures of stale responses.
  public var freshness: FreshnessFigures
  /// Figures of prefetching.
  public var prefetch: PrefetchFigures
  /// Figures of the imaging workers.
  public var imaging: ImagingFigures
  /// Figures of the server process.
  public var process: ProcessFigures
  /// Figures of the log.
  public var log: LogFigures

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
    case status, version, requests, memory, disk, downloads, flights, freshness, prefetch, imaging
    case process, log
    case uptimeSeconds = "uptime_seconds"
  }
}
